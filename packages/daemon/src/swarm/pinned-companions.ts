import type { DiskBlobStore } from '@svc/cas'
import type { ImportResult } from '@svc/client/protocol'
import type { ArtifactTorrent, Companions } from '@svc/manifest'
import { formatMagnet } from '@svc/metainfo'
import { formatRepoId, type RepoId, type Sha256Digest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import { companionWarnings, leftOut } from '../import/companions.ts'
import { writeDocument } from '../import/seal.ts'
import type { JobContext } from '../jobs/job-work.ts'
import type { ArtifactState, Artifacts } from '../library/artifacts.ts'
import type { Documents } from '../library/documents.ts'
import { LEAVES, type LeafLayers } from '../library/leaf-layers.ts'
import type { SwarmHints } from '../library/origin.ts'
import type { Provenance } from '../library/provenance.ts'
import { oneChunk } from '../library/small-blob.ts'
import type { FetchedCompanions, PeerDocumentContext, PeerDocumentRequest } from './peer-documents.ts'
import { WebseedDocuments, type WebseedReading } from './pinned-manifest.ts'

/** The pin of companions, and their torrent. */
export interface CompanionsPin {
  readonly digest: Sha256Digest
  /** `btmh:1220<64 hex>` */
  readonly infohashText: string
}

/** The command that imports an artifact on another machine, with what lies beside it. */
export function importBtCommand({
  torrent: { infohash, name },
  pin,
  companions,
  hints,
  as
}: {
  readonly torrent: Pick<ArtifactTorrent, 'infohash' | 'name'>
  readonly pin: Sha256Digest
  readonly companions?: CompanionsPin | undefined
  readonly hints: SwarmHints
  readonly as?: string | undefined
}): string {
  const second = companions === undefined ? '' : ` --companions ${companions.digest}@${companions.infohashText}`
  const named = as === undefined ? '' : ` --as ${as}`
  return `svc import bt '${formatMagnet({ infohash, name, ...hints })}' --pin ${pin}${second}${named}`
}

export type FromPeers = Omit<PeerDocumentRequest, 'trackers'>
export type FromPeersContext = Pick<PeerDocumentContext, 'signal' | 'onProgress' | 'onLie'>

/** The daemon's objects that bring companions by their pin. */
export interface CompanionsDeps {
  readonly context: {
    readonly store: DiskBlobStore
    readonly leafLayers: LeafLayers
    readonly artifacts: Artifacts
    readonly documents: Documents
  }
  readonly reading: WebseedReading
  /** They are here, and given to everybody. */
  readonly hasCompanions: (digest: Sha256Digest) => boolean
  /** Undefined if they came here meanwhile, as {@link hasCompanions} says. */
  readonly companionsFromPeers: (
    request: FromPeers,
    context: FromPeersContext
  ) => Promise<(FetchedCompanions & { /** With the key of a webseed. */ readonly isSigned: boolean }) | undefined>
  /** True if only the sources in the request may learn of it. */
  readonly isWithheld: (artifact: Pick<ArtifactState, 'provenance'> | 'damaged') => boolean
}

interface Brought {
  readonly document: Companions
  /** What their source said of who may have them. */
  readonly facts: Provenance
}

/** What became of the companions: for the result of the job, and for people. */
export interface BroughtCompanions {
  readonly result: Pick<ImportResult, 'companions' | 'omitted'>
  readonly warnings: readonly string[]
}

/**
 * Brings in the companions of an artifact that is here by now, and stays whatever becomes of them: old peers do not know their
 * torrent. All of them are kept, or none.
 * @throws what the disk does; the signal's reason
 */
export async function bringCompanions(
  wanted: CompanionsPin,
  { pin, repo, hints }: { readonly pin: Sha256Digest; readonly repo: RepoId | undefined; readonly hints: SwarmHints },
  torrent: Pick<ArtifactTorrent, 'infohash' | 'name'>,
  { context, reading, companionsFromPeers, hasCompanions, isWithheld }: CompanionsDeps,
  { signal, update }: Pick<JobContext, 'signal' | 'update'>
): Promise<BroughtCompanions> {
  const { store, leafLayers, artifacts, documents } = context
  const as = repo && formatRepoId(repo)
  const complaints: string[] = []
  const webseeds = new WebseedDocuments(reading, hints.webseeds, (message) => complaints.push(message))
  const without = (why: string): BroughtCompanions => {
    const again = importBtCommand({ torrent, pin, companions: wanted, hints, as })
    return {
      result: {},
      warnings: [`the files that lie beside the model are not here: ${why}; later, this fetches them alone: ${again}`]
    }
  }
  // what everybody has from here already proves nothing anew
  const known = async (): Promise<Brought | undefined> => {
    const document = await documents.companions(wanted.digest)
    return document && { document, facts: { access: 'public' } }
  }
  const fetched = async (): Promise<Brought | undefined> => {
    const found = await webseeds.info(wanted.infohashText, signal)
    const state = await artifacts.standing(pin)
    const isQuiet = state === undefined || isWithheld(state)
    const answer = await companionsFromPeers(
      {
        pin: wanted.digest,
        infohashText: wanted.infohashText,
        info: found?.info,
        hints: { ...hints, webseeds: found === undefined ? [] : [found.webseed] },
        quiet: isQuiet
      },
      { signal, onProgress: update, onLie: (lie) => complaints.push(lie) }
    )
    if (answer === undefined) return known()
    const { companions, bytes } = answer
    const isSigned = answer.isSigned || webseeds.isSigned
    const isMarked = webseeds.markedBy !== undefined
    // the artifact gives its companions to everybody whom it is given to
    if (!isQuiet && (isSigned || isMarked)) return undefined
    for (const { digest, size: sizeBytes } of companions.document.files) {
      const chunks = oneChunk(bytes.get(digest)!)
      await leafLayers.keep(await store.ingest(chunks, { digest, sizeBytes, attachments: [LEAVES], signal }))
    }
    await writeDocument(store, companions, signal)
    const access = isSigned ? ({ access: 'restricted', by: 'webseed-key' } as const) : ({ access: 'public' } as const)
    return { document: companions.document, facts: { ...access, ...(isMarked && { marked: true }) } }
  }
  try {
    const brought = (hasCompanions(wanted.digest) ? await known() : undefined) ?? (await fetched())
    if (brought === undefined)
      return without('their source does not give them to everybody, and the model is shared with everybody')
    const { document, facts } = brought
    await artifacts.addCompanions(pin, as ?? '', { digest: wanted.digest, facts })
    const names = new Set((await documents.manifest(pin))?.files.map(({ name }) => name))
    return {
      result: { companions: wanted.digest, omitted: leftOut({ document }).length },
      warnings: await companionWarnings({ document }, names, store)
    }
  } catch (error) {
    signal.throwIfAborted()
    const isOfSource = error instanceof DaemonError && ['E_SOURCE_UNAVAILABLE', 'E_NOT_IMPORTABLE'].includes(error.code)
    if (!isOfSource) throw error
    return without([error.message, ...complaints].slice(0, 5).join('; '))
  } finally {
    update({ message: undefined })
  }
}
