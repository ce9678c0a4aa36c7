import { rm } from 'node:fs/promises'
import { type Clock, systemClock } from '@svc/internal-clock'
import { ownTemporaryFolder } from '@svc/internal-files'
import type { ReadableModels } from '@svc/internal-models'
import {
  type Artifacts,
  ComingModels,
  DocumentReader,
  Documents,
  LentViews,
  type Library,
  LibraryError,
  type Log,
  Needed,
  type Repos,
  Revised,
  SignedModels,
  type TrustRuleSource,
  TrustRules,
  ViewMaker,
  verdictOf,
  WantedBlobs
} from '@svc/internal-state'
import type { Sha256Digest } from '@svc/ref'
import { OpenedLibrary, SILENT } from './open-library.ts'
import type { Operations } from './operations.ts'
import { OpenedReader, type ReadParts } from './read-library.ts'

/** What is served to others of a store: this process's own, or one that it reads beside its owner. */
export interface ServedParts extends Pick<Library, 'coming' | 'wanted' | 'documents'> {
  readonly clock: Clock
  readonly log: Log
  readonly store: Pick<Library['store'], 'stat' | 'open' | 'requireRoot'>
  readonly repos: Repos
  readonly artifacts: Artifacts
  readonly needed: Pick<Needed, 'isGiven'>
  readonly holdings: Pick<Library['holdings'], 'unprovenNow'>
  readonly signed: Pick<Library['signed'], 'complaint' | 'ruleFor'>
  readonly views: { readonly lent: LentViews }
  readonly usage: Pick<Library['usage'], 'note'>
  readonly running: Pick<Operations, 'openOf' | 'over'>
  /** Whether artifacts can be shown before they are complete: only their importer knows what is here of them. */
  readonly showsArriving: boolean
  /** After the last answer. */
  close(): Promise<void>
}

/**
 * @param trust the rules of the store's owner, for a store that is read beside it
 * @throws LibraryError `E_INVALID` for models that this process has opened with neither `openLibrary` nor `readLibrary`, and for
 *   rules with a library of its own; `E_TRUST` for a key that cannot be read
 */
export async function servedPartsOf(
  models: ReadableModels,
  trust?: readonly TrustRuleSource[] | undefined
): Promise<ServedParts> {
  const owned = OpenedLibrary.partsOf(models)
  if (owned !== undefined && trust !== undefined)
    throw new LibraryError(
      'E_INVALID',
      'trust is for what readLibrary gave: a library of openLibrary has no such rules'
    )
  if (owned !== undefined) return { ...owned, showsArriving: true, close: async () => undefined }
  const read = OpenedReader.partsOf(models)
  if (read !== undefined) return besideOwner(read, await TrustRules.open(trust ?? []))
  throw new LibraryError('E_INVALID', 'only a library of openLibrary, or a reader of readLibrary, can be served')
}

/** How soon what the owner of the store withholds is cut. Before each answer its record is read. */
const LOOK_MS = 500
/** Nothing is removed by this process. */
const NO_LEASE = { keep: () => undefined, release: () => undefined }

/** Files that are unpacked lie in a folder of this process: it writes nothing into the store. */
async function besideOwner(
  { blobs, repos, artifacts, elsewhere, requireRoot }: ReadParts,
  trust: TrustRules,
  clock: Clock = systemClock
): Promise<ServedParts> {
  const documentReader = new DocumentReader()
  const documents = new Documents(blobs, undefined, documentReader)
  const maker = new ViewMaker({ store: blobs, artifacts, documents })
  // views of others hold what is here, but give nobody anything
  const needed = new Needed({ repos, artifacts, documents, store: blobs, views: NO_VIEWS })
  const folder = await ownTemporaryFolder('svc-views')
  const lent = new LentViews({ lease: () => NO_LEASE }, maker, folder)
  const lookAgain = async (): Promise<void> => {
    await artifacts.lookElsewhere()
    const isGiven = async (digest: Sha256Digest): Promise<boolean> =>
      (await needed.isGiven(digest)) && verdictOf(await artifacts.standing(digest), 'hub-mirror').given
    await lent.endUnless(isGiven)
  }
  const looked = new Revised<void>()
  // one that fails is made up for by the next; while the disk of the store is away, no request is answered
  const look = (): void => void looked.at(elsewhere.revision, lookAgain).catch(() => undefined)
  const close = async (): Promise<void> => {
    await maker.close()
    await Promise.all([documentReader.close(), trust.close()])
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await looked.at(elsewhere.revision, lookAgain)
  } catch (error) {
    await close()
    throw error
  }
  const looking = clock.every(LOOK_MS, look)
  return {
    clock,
    log: SILENT,
    store: { ...blobs, requireRoot },
    repos,
    artifacts,
    documents,
    needed,
    holdings: { unprovenNow: async () => [] },
    signed: new SignedModels({ store: blobs, documents, clock, log: SILENT, trust }),
    views: { lent },
    coming: new ComingModels(),
    wanted: new WantedBlobs(),
    usage: { note: () => undefined },
    running: { openOf: () => [], over: async () => undefined },
    showsArriving: false,
    close: () => {
      looking.cancel()
      return close()
    }
  }
}

const NO_VIEWS = { changes: 0, held: async () => [], companionsAt: async () => [] }
