import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, systemClock } from '@svc/internal-clock'
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
  ViewMaker,
  WantedBlobs
} from '@svc/internal-state'
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

/** @throws LibraryError `E_INVALID` for models that this process has opened with neither `openLibrary` nor `readLibrary` */
export async function servedPartsOf(models: ReadableModels): Promise<ServedParts> {
  const owned = OpenedLibrary.partsOf(models)
  if (owned !== undefined) return { ...owned, showsArriving: true, close: async () => undefined }
  const read = OpenedReader.partsOf(models)
  if (read !== undefined) return besideOwner(read)
  throw new LibraryError('E_INVALID', 'only a library of openLibrary, or a reader of readLibrary, can be served')
}

/** How soon what the owner of the store withholds is cut. Before each answer its record is read. */
const LOOK_MS = 500
/** Nothing is removed by this process. */
const NO_LEASE = { keep: () => undefined, release: () => undefined }

/** Files that are unpacked lie in a folder of this process: it writes nothing into the store. */
async function besideOwner(
  { blobs, repos, artifacts, elsewhere, requireRoot }: ReadParts,
  clock: Clock = systemClock
): Promise<ServedParts> {
  const documentReader = new DocumentReader()
  const documents = new Documents(blobs, undefined, documentReader)
  const maker = new ViewMaker({ store: blobs, artifacts, documents })
  const folder = await mkdtemp(join(tmpdir(), 'svc-views-'))
  let told = elsewhere.revision
  await artifacts.lookElsewhere()
  const look = clock.every(LOOK_MS, () => {
    const { revision } = elsewhere
    if (revision === told) return
    told = revision
    // unreadable while its disk is away: then no request is answered
    void artifacts.lookElsewhere().catch(() => undefined)
  })
  return {
    clock,
    log: SILENT,
    store: { ...blobs, requireRoot },
    repos,
    artifacts,
    documents,
    // views of others hold what is here, but give nobody anything
    needed: new Needed({ repos, artifacts, documents, store: blobs, views: NO_VIEWS }),
    holdings: { unprovenNow: async () => [] },
    // rules for signatures are of a daemon's configuration
    signed: { complaint: async () => undefined, ruleFor: async () => undefined },
    views: { lent: new LentViews({ lease: () => NO_LEASE }, maker, folder) },
    coming: new ComingModels(),
    wanted: new WantedBlobs(),
    usage: { note: () => undefined },
    running: { openOf: () => [], over: async () => undefined },
    showsArriving: false,
    close: async () => {
      look.cancel()
      await maker.close()
      await documentReader.close()
      await rm(folder, { recursive: true, force: true })
    }
  }
}

const NO_VIEWS = { changes: 0, held: async () => [], companionsAt: async () => [] }
