import { spawnSync } from 'node:child_process'
import { accessSync, constants, statfsSync, statSync } from 'node:fs'
import { NETWORK_FILE_SYSTEMS } from '@svc/internal-files'
import { formatBytes } from '../format.ts'
import { type Check, codeOf, type DoctorInput, type Finding, findingsOf } from './finding.ts'

/** The store's folder, from the daemon or else the environment. */
function storeRoot({ status, env }: DoctorInput): string | undefined {
  if (status !== undefined) return status.root
  return env.SVC_ROOT !== undefined && env.SVC_ROOT !== '' ? env.SVC_ROOT : undefined
}

/** The store's folder: whether it exists, belongs to the user, is closed to others, and is writable. */
export const store: Check = (subject) => {
  const say = findingsOf('store')
  const root = storeRoot(subject)
  if (root === undefined) return [say.note('only the daemon knows where the store is', 'start it, or run svcd --check')]
  try {
    const stat = statSync(root)
    const mode = stat.mode & 0o777
    if (!stat.isDirectory()) return [say.bad(`${root} is not a folder`, 'set [store] root to a folder')]
    if (stat.uid !== subject.uid)
      return [say.note(`${root} belongs to user ${stat.uid}: its files can be loaded as far as their modes allow`)]
    if ((mode & 0o077) !== 0)
      return [say.warn(`others may look into ${root} (mode ${mode.toString(8)})`, `chmod 700 ${root}`)]
    accessSync(root, constants.R_OK | constants.W_OK | constants.X_OK)
    return [say.ok(`${root} is yours alone, and can be written`)]
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return [say.bad(`${root} is gone`, 'bring it back, then restart the daemon')]
    return [say.bad(`${root} cannot be used (${code})`, 'check its permissions, and those of the folders above it')]
  }
}

/** Whether every record of the state can be read. */
export const records: Check = ({ status, damaged }) => {
  const say = findingsOf('records')
  if (damaged.length === 0) return status === undefined ? [] : [say.ok('every record that was looked at can be read')]
  const advice = 'the rest works on; svc fsck looks at everything, docs/disk.md says how to go on'
  return damaged.map(({ file, what }) => ({ ...say.bad(`${file}: ${what}`, advice), isDamage: true }))
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
    return [findingsOf('space').note(`free space cannot be read (${codeOf(error)})`)]
  }
}

/** Figures from statfs(2); file systems without inode tables report 0 for both counts of inodes. */
export function judgeSpace(freeBytes: number, totalBytes: number, freeInodes: number, inodes: number): Finding[] {
  const say = findingsOf('space')
  const text = `${formatBytes(freeBytes)} of ${formatBytes(totalBytes)} free`
  const advice = 'remove models (svc rm, then svc gc), or move the store to a larger disk'
  if (inodes > 0 && freeInodes < 1000)
    return [say.bad(`${text}, but the file system has no more room for files`, advice)]
  if (freeBytes < GIB) return [say.bad(`${text}: no model fits`, advice)]
  if (freeBytes < 10 * GIB) return [say.warn(`${text}: few models fit`, advice)]
  return [say.ok(text)]
}

/** Of the machine's own disks and memory. */
const LINUX_TYPES: Readonly<Record<number, string>> = {
  16914836: 'tmpfs',
  2240043254: 'ramfs',
  19780: 'vfat',
  538032816: 'exfat',
  1397118030: 'ntfs',
  1936094318: 'ntfs3',
  61267: 'ext4',
  2435016766: 'btrfs',
  1481003842: 'xfs',
  801189825: 'zfs',
  3393526350: 'bcachefs',
  4076150800: 'f2fs',
  2035054128: 'overlay'
}

/** The name of a file system by `f_type` of statfs(2), Linux; undefined for an unknown one. */
export const linuxType = (type: number): string | undefined =>
  NETWORK_FILE_SYSTEMS.get(type >>> 0) ?? LINUX_TYPES[type >>> 0]

/** The type of the store's file system, and its consequences. */
export const fileSystem: Check = (subject) => {
  const say = findingsOf('file system')
  const root = storeRoot(subject)
  if (root === undefined) return []
  try {
    const type = subject.platform === 'darwin' ? macType(root) : linuxType(statfsSync(root).type)
    return [judgeFileSystem(type)]
  } catch (error) {
    return [say.note(`the file system cannot be told (${codeOf(error)})`)]
  }
}

/** `type` as in mount(8); undefined for an unknown one. */
export function judgeFileSystem(type: string | undefined): Finding {
  const say = findingsOf('file system')
  switch (type) {
    case 'btrfs':
    case 'xfs':
    case 'apfs':
    case 'bcachefs':
      return say.ok(`${type}: files are adopted and copied without taking room twice, where both are on it`)
    case 'ext4':
    case 'zfs':
    case 'f2fs':
    case 'hfs':
      return say.ok(type)
    case 'nfs':
    case 'cifs':
    case 'smb':
    case 'smb2':
    case 'smbfs':
    case '9p':
    case 'afs':
    case 'ceph':
    case 'lustre':
      return say.warn(
        `${type} is reached over a network: runtimes map weights into memory, which is very slow there, and locks may not hold`,
        'keep the store on a local disk; or load with --no-mmap where the runtime has it'
      )
    case 'fuse':
      return say.note('fuse: how well mapping, locks and durable writes work depends on what is behind it')
    case 'tmpfs':
    case 'ramfs':
      return say.warn(`${type} is memory: the store is gone after a restart`, 'set [store] root to a folder on a disk')
    case 'overlay':
      return say.warn('overlay: the store is part of a container, and goes with it', 'mount a volume for the store')
    case 'vfat':
    case 'exfat':
    case 'ntfs':
    case 'ntfs3':
    case 'msdos':
      return say.bad(`${type} keeps no permissions, and has no hard links`, 'use a Linux or macOS file system')
    default:
      return say.note(type === undefined ? 'a file system that is not known here' : `${type}, not known here`)
  }
}

/** From the list of mounts, e.g. `/dev/disk3s1 on /System/Volumes/Data (apfs, local, journaled)`. */
function macType(root: string): string | undefined {
  return mountedType(spawnSync('/sbin/mount', { encoding: 'utf8' }).stdout ?? '', root)
}

/** The type of the mount that `path` lies in, from the output of macOS's mount(8). */
export function mountedType(mounts: string, path: string): string | undefined {
  let best: { readonly point: string; readonly type: string } | undefined
  for (const [, point = '', type = ''] of mounts.matchAll(/^.+? on (.+) \(([^,)]+)[^)]*\)$/gm)) {
    const inside = point === '/' || path === point || path.startsWith(`${point}/`)
    if (inside && (best === undefined || point.length > best.point.length)) best = { point, type }
  }
  return best?.type
}
