import { dirname } from 'node:path'
import { errnoOf } from '@svc/internal-errors'
import { type FilePort, isLinkRefused, readUpToSync, syncFolderSync, writeFullySync } from '@svc/internal-files'
import { isWhole, OPEN_BLOB } from './blob-reader.ts'
import { encodeError, ioError } from './errors.ts'
import type { Layout } from './layout.ts'
import { closeQuietly, discardPart, NEW_PART } from './part-file.ts'
import type { CommitItem, CommitOutcome } from './thread-protocol.ts'

// How a part file becomes a blob. The order protects against power loss as well as kill -9: file synced → mode 0444 →
// name made without replacing another file → folder synced → acknowledged. The caller holds the digest's lock, so
// nobody else moves this name.

/** The state of one commit. Invariant: each step handles only the commits that have no outcome yet. */
interface Commit {
  readonly item: CommitItem
  readonly layout: Layout
  readonly blob: string
  readonly shard: string
  partFd: number | undefined
  partExists: boolean
  /** The part replaced an older file of that name, so removing the name would not restore that file. */
  replaced: boolean
  outcome: CommitOutcome | undefined
}

/**
 * Commits parts together, phase by phase: the first fsync of a phase commits the file system's journal for the others,
 * and each folder is synced once. Each item succeeds or fails alone, and only after its own syncs.
 */
export function commitParts(port: FilePort, layout: Layout, items: readonly CommitItem[]): CommitOutcome[] {
  const commits = items.map(
    (item): Commit => ({
      item,
      layout,
      blob: layout.blob(item.digest),
      shard: layout.shard(item.digest),
      partFd: item.partFd,
      partExists: item.bytes === undefined,
      replaced: false,
      outcome: undefined
    })
  )
  each(commits, 'write part', (commit) => write(port, commit))
  each(commits, 'sync part', (commit) => sync(port, commit))
  each(commits, 'name blob', (commit) => link(port, commit))
  syncShards(port, commits)
  return commits.map((commit) => end(port, commit))
}

/** Runs one step for all commits without an outcome. An error ends only the commit that it occurred in. */
function each(commits: readonly Commit[], operation: string, step: (commit: Commit) => void): void {
  for (const commit of commits) {
    if (commit.outcome !== undefined) continue
    try {
      step(commit)
    } catch (error) {
      fail(commit, ioError(error, operation, commit.blob))
    }
  }
}

function fail(commit: Commit, error: unknown, nameStays = false): void {
  commit.outcome = { state: 'failed', error: encodeError(error), nameStays }
}

/** Ends the commit if the blob already exists; otherwise writes the bytes of a small blob to its part file. */
function write(port: FilePort, commit: Commit): void {
  const { item } = commit
  if (item.existing === 'keep' && isWhole(port, commit.blob, item.sizeBytes)) {
    const same = item.bytes !== undefined && holds(port, commit.blob, item.bytes)
    commit.outcome = { state: 'exists', same, ...(!same && { bytes: item.bytes }) }
    return
  }
  if (item.bytes === undefined) return
  commit.partFd = port.openSync(item.part, NEW_PART, 0o600)
  commit.partExists = true
  writeFullySync(port, commit.partFd, item.bytes, 0)
}

/** A failed fsync is final: a second one would report success although pages were lost. */
function sync(port: FilePort, commit: Commit): void {
  if (commit.partFd === undefined) return
  port.fsyncSync(commit.partFd)
  port.fchmodSync(commit.partFd, 0o444)
  const fd = commit.partFd
  commit.partFd = undefined
  port.closeSync(fd)
}

/**
 * Links the part to the blob's name. A file that has that name already goes to quarantine, unless its bytes are these.
 */
function link(port: FilePort, commit: Commit): void {
  const { shard } = commit
  for (let attempt = 0; ; attempt++) {
    try {
      linkOrRename(port, commit)
      return
    } catch (error) {
      const errno = errnoOf(error)
      if (attempt >= 3) throw error
      if (errno === 'EEXIST' && commit.item.existing === 'replace') return renameOver(port, commit)
      if (errno === 'EEXIST') {
        if (takeOver(port, commit)) return
      } else if (errno === 'ENOENT') {
        port.mkdirSync(shard, 0o700)
        port.chmodSync(shard, 0o700)
        syncFolderSync(port, dirname(shard))
      } else throw error
    }
  }
}

function linkOrRename(port: FilePort, commit: Commit): void {
  const { item, blob } = commit
  try {
    port.linkSync(item.part, blob)
  } catch (error) {
    if (!isLinkRefused(error)) throw error
    if (port.tryLstatSync(blob) !== undefined) throw Object.assign(new Error('the blob exists'), { code: 'EEXIST' })
    port.renameSync(item.part, blob)
    commit.partExists = false
  }
}

/**
 * Links the old file into quarantine, then renames the part over it, so that the name exists at all times. If a hard
 * link is impossible (a folder has the name, or the file system has no links), it moves the old file away instead and
 * returns false; the caller then links again.
 */
function takeOver(port: FilePort, commit: Commit): boolean {
  const { item, blob, layout } = commit
  const aside = layout.aside(item.digest)
  let copied = true
  try {
    port.linkSync(blob, aside)
  } catch (error) {
    if (!isLinkRefused(error)) throw error
    copied = false
    port.renameSync(blob, aside)
  }
  syncFolderSync(port, layout.quarantine)
  if (!copied) return false
  renameOver(port, commit)
  return true
}

/** The name exists at all times. */
function renameOver(port: FilePort, commit: Commit): void {
  port.renameSync(commit.item.part, commit.blob)
  commit.partExists = false
  commit.replaced = true
}

function syncShards(port: FilePort, commits: readonly Commit[]): void {
  const committed = commits.filter(({ outcome }) => outcome === undefined)
  for (const [shard, members] of Map.groupBy(committed, ({ shard }) => shard)) {
    try {
      syncFolderSync(port, shard)
      for (const commit of members) commit.outcome = { state: 'committed' }
    } catch (error) {
      for (const commit of members) retract(port, commit, ioError(error, 'sync folder', shard))
    }
  }
}

/** The folder could not be synced, so the name may not survive a power loss: remove it before anybody relies on it. */
function retract(port: FilePort, commit: Commit, error: unknown): void {
  let stays = commit.replaced
  try {
    if (!stays) port.unlinkSync(commit.blob)
  } catch {
    stays = true
  }
  fail(commit, error, stays)
}

/** Deletes what is left of the part file, unless the caller still has to compare it with the existing blob. */
function end(port: FilePort, { item, partFd, partExists, outcome }: Commit): CommitOutcome {
  if (outcome?.state !== 'exists') discardPart(port, partFd, partExists ? item.part : undefined)
  return outcome!
}

/** Whether the file at `path` holds these bytes. False also for one that cannot be read: it needs a closer look. */
function holds(port: FilePort, path: string, bytes: Uint8Array): boolean {
  let fd: number | undefined
  try {
    fd = port.openSync(path, OPEN_BLOB)
    return Buffer.compare(readUpToSync(port, fd, new Uint8Array(bytes.length), 0), bytes) === 0
  } catch {
    return false
  } finally {
    closeQuietly(port, fd)
  }
}
