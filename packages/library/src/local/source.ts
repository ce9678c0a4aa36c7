import { Gate } from '@svc/internal-concurrency'
import { errnoName, isNoSpace } from '@svc/internal-files'
import { type Advise, LibraryError, NO_ADVICE } from '@svc/internal-state'
import type { ToolFolders } from '@svc/view'
import type { FileHere, HeldName, ImportSource, OpenedFile } from '../import/source.ts'
import { downloadAmong, type ToolDownload, withheldWarning } from './downloads.ts'
import { HeldParents } from './held-parents.ts'
import { fileIdentityOf, sameIdentity, type WalkedFile, walk } from './walk.ts'

/** Many small files go to the hashing threads and the disk at a time; large ones wait for a thread. */
const CONCURRENCY = 64

/** A walk may list 100,000 files: limit the number of concurrent ones. */
const walks = new Gate(4)

/**
 * Files and folders of this machine as an import source. Nothing is read before a file's `open`. What another tool
 * downloaded is not the owner's own, whoever may have it (spec add.37). @throws as `walk`
 */
export async function localSource(
  paths: readonly string[],
  {
    as,
    companions = 'loaders',
    tools,
    advise = NO_ADVICE
  }: {
    readonly as: string
    readonly companions?: 'loaders' | 'all' | undefined
    readonly tools: Pick<ToolFolders, 'toolOf'>
    readonly advise?: Advise
  }
): Promise<ImportSource> {
  const files = await walks.run(undefined, () => walk(paths))
  const download = await downloadAmong(files, tools)
  const parents = new HeldParents()
  return {
    kind: 'local',
    files: files.map((file) => localFile(file, parents)),
    givesAll: companions === 'all',
    annotations: {},
    fetchUnrecognized: false,
    concurrency: CONCURRENCY,
    provenance: () => ({ access: download === undefined ? 'own' : 'unknown' }),
    origin: { kind: 'local' },
    warnings: download === undefined ? [] : [downloadWarning(as, download, advise)],
    close: () => parents.close()
  }
}

function downloadWarning(as: string, { tool, path }: ToolDownload, advise: Advise): string {
  const why = `${JSON.stringify(path)} is in a cache of ${tool}, which may have needed a login`
  return withheldWarning(as, why + advise({ to: 'adopt' }), advise)
}

const localFile = (file: WalkedFile, parents: HeldParents): FileHere => ({
  name: file.name,
  sizeBytes: Number(file.identity.size),
  open: () => openLocal(file, parents),
  ...(file.identity.size < MAX_NAMED_BYTES && { holdName: () => holdName(file, parents) })
})

/** Larger files are worth opening here. */
const MAX_NAMED_BYTES = 4n << 20n

async function holdName({ path, identity }: WalkedFile, parents: HeldParents): Promise<HeldName> {
  const { parent, name, release } = await parents.hold(path)
  return { source: { path: parent.at(name), identity }, release }
}

/**
 * Opens a file again in its folder, and accepts it only if it is the listed one.
 * @throws LibraryError `E_SOURCE_NOT_REGULAR` for a link or the like, `E_NOT_IMPORTABLE` for another file, `E_NO_SPACE`
 *   or `E_IO` when it cannot be opened
 */
export async function openLocal({ path, name, identity }: WalkedFile, parents: HeldParents): Promise<OpenedFile> {
  let opened
  try {
    opened = await parents.with(path, (parent, last) => parent.file(last))
  } catch (cause) {
    if (cause instanceof LibraryError) throw cause
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') throw changed(name, 'it is gone', cause)
    const what = `${JSON.stringify(name)} cannot be opened (${errnoName(cause) ?? code ?? 'unknown error'})`
    throw new LibraryError(isNoSpace(cause) ? 'E_NO_SPACE' : 'E_IO', what, { cause })
  }
  const { handle, stat } = opened
  if (!sameIdentity(fileIdentityOf(stat), identity)) {
    await handle.close()
    throw changed(name, 'it is no longer the file that was listed')
  }
  let closed = false
  return {
    fd: handle.fd,
    async unchanged() {
      if (!sameIdentity(fileIdentityOf(await handle.stat({ bigint: true })), identity))
        throw changed(name, 'it was written to')
    },
    async close() {
      if (closed) return
      closed = true
      await handle.close()
    }
  }
}

const changed = (name: string, how: string, cause?: unknown): LibraryError =>
  new LibraryError(
    'E_NOT_IMPORTABLE',
    `${JSON.stringify(name)} changed while it was imported: ${how}; import again when nothing writes to it`,
    { cause }
  )
