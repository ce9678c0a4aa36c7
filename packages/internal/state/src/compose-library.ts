import { join } from 'node:path'
import type { DiskBlobStore, FilePortModule } from '@svc/cas'
import type { Clock } from '@svc/internal-clock'
import { loadFilePort } from '@svc/internal-files'
import { ReaderLeases } from '@svc/internal-models'
import { Arrivals } from './arrivals.ts'
import { Artifacts } from './artifacts.ts'
import { ComingModels } from './coming.ts'
import type { DocumentReader } from './document-reader.ts'
import { Documents } from './documents.ts'
import { Holdings } from './holdings.ts'
import { KeptPorts } from './kept-ports.ts'
import { LeafLayers } from './leaf-layers.ts'
import type { Library } from './library.ts'
import { type Advise, NO_ADVICE } from './library-error.ts'
import type { Log } from './log.ts'
import { Members } from './members.ts'
import { Needed } from './needed.ts'
import { NewerCommits } from './newer-commits.ts'
import type { Offload } from './offload/pool.ts'
import { ReplacedFiles } from './replace.ts'
import { Repos } from './repos.ts'
import { Resolver } from './resolve.ts'
import { SignedModels } from './signed-models.ts'
import { Snapshots } from './snapshots.ts'
import { Superseded } from './superseded.ts'
import type { TrustRules } from './trust.ts'
import { Usage } from './usage.ts'
import { Views } from './views.ts'
import { WantedBlobs } from './wanted-blobs.ts'

interface LibraryParts {
  readonly store: DiskBlobStore
  readonly trust: TrustRules
  readonly clock: Clock
  readonly log: Log
  /** Of the program, for snapshots. */
  readonly version: string
  readonly offload: Offload
  readonly documentReader: DocumentReader
  /** Default: nothing is advised. */
  readonly advise?: Advise | undefined
  /** Replaces the operating system's file functions. */
  readonly filePort?: FilePortModule | undefined
}

/** Opens the state of a store under its root's lock, and connects the objects of this room. @throws the system's errors */
export async function composeLibrary({
  offload,
  documentReader,
  version,
  filePort,
  advise = NO_ADVICE,
  ...parts
}: LibraryParts): Promise<Library> {
  const { store, clock, log } = parts
  const port = await loadFilePort(filePort)
  const files = await ReplacedFiles.open(join(store.root, 'state'), port, () => store.requireOwner())
  const repos = new Repos(store.root, files)
  const artifacts = new Artifacts(store.root, files, clock)
  const documents = new Documents(store, port, documentReader)
  const library = {
    ...parts,
    advise,
    files,
    ports: new KeptPorts(store.root, files, log),
    repos,
    artifacts,
    documents,
    signed: new SignedModels({ ...parts, documents }),
    resolver: new Resolver(repos, documents),
    leafLayers: await LeafLayers.open(store, offload, port),
    readerLeases: new ReaderLeases(store.root, clock),
    usage: await Usage.open(store, clock),
    newer: new NewerCommits(),
    superseded: new Superseded(),
    wanted: new WantedBlobs(),
    coming: new ComingModels()
  }
  const views = await Views.open({ ...library, files })
  const needed = new Needed({ ...library, views })
  const snapshots = new Snapshots({ ...library, version, files, needed })
  const members = new Members(library)
  const holdings = new Holdings({ ...library, arrivals: new Arrivals(store.root, files) })
  return { ...library, views, needed, snapshots, members, holdings }
}
