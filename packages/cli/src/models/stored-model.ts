import { ClientError, type OpenCompanions, type View } from '@svc/client'
import type { PublicationInput } from '@svc/publish'
import { type Sha256Digest, tryParseDigest } from '@svc/ref'
import { CliError } from '../errors.ts'
import { count } from '../format.ts'
import type { Session } from '../session.ts'
import { documentBytes, jsonDocument } from './documents.ts'
import { withDigests } from './file-digest.ts'
import type { ModelToPack } from './packing.ts'
import { shortRef } from './reference.ts'

/** Piece layers have 32 bytes a piece. */
const MAX_LAYERS_BYTES = 80 << 20

/** Collects what a publication needs of a stored model. @param subject with its held view, so that nothing removes its files. @throws CliError, ClientError */
export async function storedModel(
  session: Session,
  { canonical, ref, isWithheld, view }: ModelToPack & { readonly view: View }
): Promise<PublicationInput & { readonly warnings: readonly string[] }> {
  const { client } = session
  const opened = await client.open(canonical)
  const missing = opened.missing ?? []
  if (missing.length > 0) {
    throw new CliError('verification', `${shortRef(canonical)} lacks ${count(missing.length, 'file')} here`, {
      code: 'E_VERIFY_FAILED',
      hint: `fetch them with: svc pull ${shortRef(canonical)}`
    })
  }
  const paths = new Map(opened.files.map(({ digest, path }) => [digest, path]))
  for (const { digest, blobPath } of opened.companions?.files ?? []) paths.set(digest, blobPath)
  const manifestDigest = tryParseDigest(opened.manifestDigest)!
  return {
    manifestDigest,
    manifest: await documentBytes(client, manifestDigest),
    ref,
    isWithheld,
    companions: opened.companions && (await givenOf(opened.companions, view)),
    warnings: lostOf(opened.companions).map(
      ({ path }) => `${path} came with ${shortRef(canonical)} and is lost here: it is not published`
    ),
    pathOf: (digest) => paths.get(digest)!,
    pieceLayers: await recordedLayers(session, opened.indexDigest, manifestDigest)
  }
}

const isGiven = ({ own }: { readonly own?: boolean }): boolean => own !== true

const lostOf = (companions: OpenCompanions | undefined) => companions?.missing?.filter(isGiven) ?? []

type GivenCompanions = NonNullable<PublicationInput['companions']>

/**
 * The companions without those that the daemon marks as the owner's own, and without those that are no files of the model's
 * folder; names those that are lost here.
 */
async function givenOf(companions: OpenCompanions, view: View): Promise<GivenCompanions | undefined> {
  const { files, omitted } = companions
  const listed = new Map((await withDigests(view.files)).map(({ name, digest }) => [name, digest]))
  const given = files
    .map(({ digest, ...file }) => ({ ...file, digest: tryParseDigest(digest)! }))
    .filter((file) => isGiven(file) && listed.get(file.path) === file.digest)
    .map(({ path, size, digest }) => ({ path, size, digest }))
  const lost = lostOf(companions).map(({ path, size }) => ({ path, size, reason: 'unreadable' as const }))
  if (given.length + lost.length === 0) return undefined
  // first, as the list may be cut
  return { files: given, omitted: [...lost, ...(omitted.filter(isGiven) as GivenCompanions['omitted'])] }
}

/** The piece layers that the import recorded; undefined if there are none, and they have to be computed from the files. */
async function recordedLayers(
  { client }: Session,
  indexDigest: string | undefined,
  manifestDigest: Sha256Digest
): Promise<Uint8Array | undefined> {
  try {
    const index = indexDigest === undefined ? undefined : await jsonDocument(client, indexDigest)
    const members = index?.members as
      | readonly { readonly manifest: string; readonly distribution: string }[]
      | undefined
    const distribution = members?.find(({ manifest }) => manifest === manifestDigest)?.distribution
    const record = distribution === undefined ? undefined : await jsonDocument(client, distribution)
    const torrent = record?.torrent as { readonly pieceLayersDigest: string } | undefined
    return torrent && (await documentBytes(client, torrent.pieceLayersDigest, MAX_LAYERS_BYTES))
  } catch (error) {
    if (error instanceof ClientError && error.code === 'E_NOT_FOUND') return undefined
    throw error
  }
}
