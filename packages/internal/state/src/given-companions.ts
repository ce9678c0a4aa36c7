import { isForLoaders } from '@svc/classify'
import { type Companions, type OmittedFile, type Sealed, sealCompanions } from '@svc/manifest'
import type { ArtifactState } from './artifact-record.ts'

type WithSource = { readonly source: Pick<ArtifactState['source'], 'kind'> }

/**
 * The only place that decides which companions may leave with an artifact that may leave (spec add.37; `verdictOf`
 * decides that). The listing of a hub or registry was published on purpose. The owner's folder was not: files that no
 * loader reads are the owner's own, as are the names of omitted files.
 */
const isOwn = (file: { readonly path: string; readonly own?: boolean }, { source }: WithSource): boolean =>
  // absent in documents of others' sources
  file.own ?? (source.kind === 'local' && !isForLoaders(file.path))

/** Marks the owner's own files at an import. @param givesAll the owner allowed all files to leave */
export const markedOwn = <T extends { readonly path: string }>(file: T, origin: WithSource, givesAll: boolean): T =>
  isOwn(file, origin) ? { ...file, own: !givesAll } : file

/** The companions that never leave: the owner's views alone have them. */
export const ownCompanions = ({ files }: Pick<Companions, 'files'>, origin: WithSource): Companions['files'] =>
  files.filter((file) => isOwn(file, origin))

/**
 * The companions that may leave: every door calls this after `verdictOf`. The document does not mention the others.
 * @returns undefined where nothing is left
 */
export function givenCompanions(
  { files, omitted, more }: Companions,
  origin: WithSource
): Sealed<Companions> | undefined {
  const given = files.filter((file) => !isOwn(file, origin)).map(({ path, size, digest }) => ({ path, size, digest }))
  const told = omitted.filter((file) => !isOwnOmission(file, origin))
  if (given.length === 0 && told.every(({ reason }) => reason === 'artifact')) return undefined
  const isAll = told.length === omitted.length
  return sealCompanions({
    files: given,
    omitted: told.map(({ path, size, reason }) => ({ path, size, reason })),
    ...(isAll && more !== undefined && { more })
  })
}

/** What was left out, with the mark of names that never leave. */
export const markedOmissions = ({ omitted }: Pick<Companions, 'omitted'>, origin: WithSource): Companions['omitted'] =>
  omitted.map((file) => {
    const { path, size, reason } = file
    return { path, size, reason, ...(isOwnOmission(file, origin) && { own: true }) }
  })

/** Names of hidden files and secrets are never shown, whatever the owner decided about the folder. */
const isOwnOmission = (file: OmittedFile, origin: WithSource): boolean =>
  file.reason === 'hidden' || file.reason === 'secret' || (file.reason !== 'artifact' && isOwn(file, origin))
