import type { Inventory, ModelMember } from '@svc/client'

/** A quant with its names. */
export interface StoredMember extends ModelMember {
  /** `ns/name` */
  readonly repo: string
  /** `ns/name:quant` */
  readonly ref: string
}

export const membersOf = ({ namespaces }: Inventory): StoredMember[] =>
  namespaces.flatMap(({ ns, name, members }) =>
    members.map((member) => ({ ...member, repo: `${ns}/${name}`, ref: `${ns}/${name}:${member.quant}` }))
  )

/** `repo` is `ns/name`. */
export const repositoryIn = ({ namespaces }: Inventory, repo: string): Inventory['namespaces'][number] | undefined =>
  namespaces.find(({ ns, name }) => `${ns}/${name}` === repo)
