import { accessSync, constants, statfsSync, statSync } from 'node:fs'
import { fileSystemType } from '@svc/internal-files'
import { formatBytes } from '../format.ts'
import { type Check, codeOf, type DoctorInput, type Found, say } from './finding.ts'

/** The store's folder, from the daemon or else the environment. */
function storeRoot({ status, env }: DoctorInput): string | undefined {
  if (status !== undefined) return status.root
  return env.SVC_ROOT !== undefined && env.SVC_ROOT !== '' ? env.SVC_ROOT : undefined
}

/** The store's folder: whether it exists, belongs to the user, is closed to others, and is writable. */
export const store: Check = (subject) => {
  const root = storeRoot(subject)
  if (root === undefined)
    return [say.note('only the daemon knows the path of the store', 'start the daemon, or run svcd --check')]
  try {
    const stat = statSync(root)
    const mode = stat.mode & 0o777
    if (!stat.isDirectory()) return [say.bad(`${root} is not a folder`, 'set [store] root to a folder')]
    if (stat.uid !== subject.uid)
      return [say.note(`${root} belongs to user ${stat.uid}; the modes of its files decide which you can load`)]
    if ((mode & 0o077) !== 0)
      return [say.warn(`other users can read ${root} (mode ${mode.toString(8)})`, `chmod 700 ${root}`)]
    accessSync(root, constants.R_OK | constants.W_OK | constants.X_OK)
    return [say.ok(`only you can use ${root}, and it is writable`)]
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return [say.bad(`${root} is missing`, 'bring it back, then restart the daemon')]
    return [say.bad(`${root} cannot be used (${code})`, 'check its permissions, and those of the folders above it')]
  }
}

/** Whether every record of the state can be read. */
export const records: Check = ({ status, damaged }) => {
  if (damaged.length === 0) return status === undefined ? [] : [say.ok('every record that was read is intact')]
  const advice = 'everything else keeps working; svc fsck checks everything, docs/disk.md says what to do'
  return damaged.map(({ file, what }) => ({ ...say.bad(`${file}: ${what}`, advice), isDamage: true }))
}

/** What takes space and belongs to no model. */
export const leftovers: Check = ({ status }) => {
  const { unfinished, quarantined } = status?.store ?? {}
  const advice = 'svc gc --partial frees them'
  return [
    ...(unfinished === undefined ? [] : [say.note(`${formatBytes(unfinished.bytes)} of unfinished downloads`, advice)]),
    ...(quarantined === undefined
      ? []
      : [say.warn(`${formatBytes(quarantined.bytes)} of corrupt files, moved aside`, advice)])
  ]
}

const GIB = 2 ** 30

/** Whether there is room for the next model. */
export const space: Check = (subject) => {
  const root = storeRoot(subject)
  if (root === undefined) return []
  try {
    const { bavail, blocks, bsize, ffree, files } = statfsSync(root)
    return judgeSpace(bavail * bsize, blocks * bsize, ffree, files)
  } catch (error) {
    return [say.note(`free space cannot be read (${codeOf(error)})`)]
  }
}

/** Figures from statfs(2); file systems without inode tables report 0 for both counts of inodes. */
export function judgeSpace(freeBytes: number, totalBytes: number, freeInodes: number, inodes: number): Found[] {
  const text = `${formatBytes(freeBytes)} of ${formatBytes(totalBytes)} free`
  const advice = 'remove models (svc rm, then svc gc), or move the store to a larger disk'
  if (inodes > 0 && freeInodes < 1000) return [say.bad(`${text}, but the file system cannot take more files`, advice)]
  if (freeBytes < GIB) return [say.bad(`${text}: no model fits`, advice)]
  if (freeBytes < 10 * GIB) return [say.warn(`${text}: few models fit`, advice)]
  return [say.ok(text)]
}

/** The type of the store's file system, and its consequences. */
export const fileSystem: Check = (subject) => {
  const root = storeRoot(subject)
  if (root === undefined) return []
  try {
    return [judgeFileSystem(fileSystemType(root, subject.platform))]
  } catch (error) {
    return [say.note(`the type of the file system cannot be determined (${codeOf(error)})`)]
  }
}

/** `type` as in mount(8); undefined for an unknown one. */
export function judgeFileSystem(type: string | undefined): Found {
  if (type === undefined) return say.note('the type of the file system is unknown')
  if (/^(btrfs|xfs|apfs|bcachefs)$/.test(type))
    return say.ok(`${type}: files on the same file system are adopted and copied without taking space twice`)
  if (/^(ext[234]|zfs|f2fs|hfs)$/.test(type)) return say.ok(type)
  if (/^(nfs4?|cifs|smb\d?|smbfs|9p|afs|ceph|lustre)$/.test(type))
    return say.warn(
      `${type} is a network file system: runtimes map weights into memory, which is very slow there, and locks may not hold`,
      'keep the store on a local disk, or load with --no-mmap where the runtime has that option'
    )
  if (/^fuse/.test(type))
    return say.note(`${type}: how well mapping, locks and durable writes work depends on the program behind it`)
  if (/^(tmpfs|ramfs)$/.test(type))
    return say.warn(`${type} is memory: the store is lost at a restart`, 'set [store] root to a folder on a disk')
  if (type === 'overlay')
    return say.warn('overlay: the store is deleted together with the container', 'mount a volume for the store')
  if (/^(vfat|exfat|ntfs3?|msdos)$/.test(type))
    return say.bad(`${type} has no permissions and no hard links`, 'use a Linux or macOS file system')
  return say.note(`${type}: svc does not know this type of file system`)
}
