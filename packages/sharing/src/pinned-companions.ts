import {
  type Beside,
  companionWarnings,
  LEAVES,
  type Library,
  LibraryError,
  leftOut,
  oneChunk,
  ownHints,
  type Provenance,
  type TrustRule,
  type TrustRules,
  type Work,
  writeDocument
} from '@svc/library/parts'
import type { ArtifactTorrent, Companions, Manifest } from '@svc/manifest'
import { formatMagnet } from '@svc/metainfo'
import { formatRepoId, type RepoId, type Sha256Digest } from '@svc/ref'
import type { FetchedCompanions, PeerDocumentContext, PeerDocumentRequest } from './peer-documents.ts'
import type { CompanionsPin, PinnedCopy, PinnedRequest } from './pinned-request.ts'
import type { PinnedTorrentDeps } from './pinned-torrent.ts'
import { WebseedDocuments, type WebseedReading } from './webseed-documents.ts'

export interface CompanionsDeps
  extends Pick<Library, 'store' | 'leafLayers' | 'artifacts' | 'documents' | 'trust' | 'clock'> {
  readonly reading: WebseedReading
  /** They are here, and public. */
  readonly hasCompanions: (digest: Sha256Digest) => boolean
  /** Undefined if they came here meanwhile, as {@link hasCompanions} says. */
  readonly companionsFromPeers: (
    request: PeerDocumentRequest,
    context: PeerDocumentContext
  ) => Promise<(FetchedCompanions & { /** With the key of a webseed. */ readonly isSigned: boolean }) | undefined>
  readonly isWithheld: PinnedTorrentDeps['isWithheld']
  /** The end of a sentence for people: how a copy is fetched here. Default: nothing is said of it. */
  readonly howToFetch?: ((copy: PinnedCopy) => string) | undefined
}

/** Companions that are here as blobs, and known to no artifact yet. */
export interface UnclaimedCompanions {
  readonly document: Companions
  /** Their source's statement about who may have them. */
  readonly facts: Provenance
}

type PinnedCompanionsRequest = Pick<PinnedRequest, 'pin' | 'repo' | 'hints'>

/**
 * Brings in all companions of an artifact, or none. The artifact stays whatever becomes of them: old peers do not know
 * their torrent. @param checked what {@link fetchCompanions} gave, already checked @throws errors of the disk; the
 * signal's reason
 */
export async function bringCompanions(
  wanted: CompanionsPin,
  request: PinnedCompanionsRequest,
  torrent: Pick<ArtifactTorrent, 'infohash' | 'name'>,
  deps: CompanionsDeps,
  job: Pick<Work, 'signal' | 'report'>,
  checked?: UnclaimedCompanions
): Promise<Beside> {
  const { artifacts, documents, trust } = deps
  const { pin, repo, hints } = request
  const as = repo && formatRepoId(repo)
  try {
    const { document, facts } = checked ?? (await fetchCompanions(wanted, request, deps, job))
    const manifest = await documents.manifest(pin)
    const rule = manifest && ruleFor(trust, repo, manifest)
    const isToCheck = checked === undefined && rule !== undefined
    const doubts = isToCheck ? await checkBrought(rule, manifest!, { document }, deps, job) : []
    await artifacts.addCompanions(pin, as ?? '', { digest: wanted.digest, facts })
    const names = new Set(manifest?.files.map(({ name }) => name))
    const warnings = [...doubts, ...(await companionWarnings({ document }, names, deps))]
    return {
      companions: wanted.digest,
      omitted: leftOut({ document }).length,
      ...(warnings.length > 0 && { warnings })
    }
  } catch (error) {
    if (!isOfSource(error)) throw error
    const { infohash, name } = torrent
    const magnet = formatMagnet({ infohash, name, ...ownHints(hints) })
    const manifest = await documents.manifest(pin).catch(() => undefined)
    const recognise = manifest?.files.some(({ kind }) => kind === 'opaque') === true ? ('opaque' as const) : undefined
    const again = deps.howToFetch?.({ magnet, pin, companions: wanted, as, recognise })
    return {
      warnings: [again === undefined ? error.message : `${error.message}; later, this fetches them alone: ${again}`]
    }
  }
}

/** The rule for the signature of a pinned artifact under a name. */
export const ruleFor = (trust: TrustRules, repo: RepoId | undefined, manifest: Manifest): TrustRule | undefined =>
  trust.ruleFor({ typed: repo ? [formatRepoId(repo)] : [], claimed: [manifest.annotations['svc.hf.repo']] })

/** Checks an artifact whose blobs are here with its companions. @returns warnings @throws as {@link TrustRules.check} */
export const checkBrought = (
  rule: TrustRule,
  manifest: Manifest,
  { document }: Pick<UnclaimedCompanions, 'document'>,
  { store, clock, trust }: Pick<CompanionsDeps, 'store' | 'clock' | 'trust'>,
  { report }: Pick<Work, 'report'>
): Promise<string[]> =>
  trust.checkStored(rule, manifest, document, { store, clock, onReading: (message) => report({ message }) })

const isOfSource = (error: unknown): error is LibraryError =>
  error instanceof LibraryError && ['E_SOURCE_UNAVAILABLE', 'E_NOT_IMPORTABLE'].includes(error.code)

/** Fetches companions as blobs. @throws LibraryError `E_SOURCE_UNAVAILABLE`; errors of the disk; the signal's reason */
export async function fetchCompanions(
  wanted: CompanionsPin,
  { pin, hints }: PinnedCompanionsRequest,
  deps: CompanionsDeps,
  { signal, report }: Pick<Work, 'signal' | 'report'>
): Promise<UnclaimedCompanions> {
  const { store, leafLayers, artifacts, documents, reading, isWithheld } = deps
  const complaints: string[] = []
  const webseeds = new WebseedDocuments(reading, hints, (message) => complaints.push(message))
  // bytes that are already public here prove nothing new
  const known = async (): Promise<UnclaimedCompanions | undefined> => {
    const document = await documents.companions(wanted.digest)
    return document && { document, facts: { access: 'public' } }
  }
  const fetched = async (): Promise<UnclaimedCompanions | undefined> => {
    const found = await webseeds.info(wanted.infohash, signal)
    const state = await artifacts.standing(pin)
    const isQuiet = state === undefined || isWithheld(state)
    const answer = await deps.companionsFromPeers(
      {
        pin: wanted.digest,
        infohashText: wanted.infohash,
        info: found?.info,
        hints: { ...hints, webseeds: found === undefined ? [] : [found.webseed] },
        quiet: isQuiet
      },
      { signal, onProgress: report, onLie: (lie) => complaints.push(lie) }
    )
    if (answer === undefined) return known()
    const { companions, bytes } = answer
    const isSigned = answer.isSigned || webseeds.isSigned
    const isMarked = webseeds.markedBy !== undefined
    // the companions leave wherever the artifact does
    if (!isQuiet && (isSigned || isMarked)) return undefined
    for (const { digest, size: sizeBytes } of companions.document.files) {
      const chunks = oneChunk(bytes.get(digest)!)
      await leafLayers.keep(await store.ingest(chunks, { digest, sizeBytes, attachments: [LEAVES], signal }))
    }
    await writeDocument(store, companions, signal)
    const access = isSigned ? ({ access: 'restricted', by: 'webseed-key' } as const) : ({ access: 'public' } as const)
    return { document: companions.document, facts: { ...access, ...(isMarked && { marked: true }) } }
  }
  const without = (why: string, cause?: unknown): LibraryError =>
    new LibraryError('E_SOURCE_UNAVAILABLE', `the companions are not here: ${why}`, { cause })
  try {
    const brought = (deps.hasCompanions(wanted.digest) ? await known() : undefined) ?? (await fetched())
    if (brought !== undefined) return brought
  } catch (error) {
    signal.throwIfAborted()
    if (!isOfSource(error)) throw error
    throw without([error.message, ...complaints].slice(0, 5).join('; '), error)
  } finally {
    report({ message: undefined })
  }
  throw without('their source is not public, and the model is')
}
