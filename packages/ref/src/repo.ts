/** A repository: `ns/name`, both canonical (lower-case). */
export interface RepoId {
  readonly ns: string
  readonly name: string
}
