import type { FilePort } from './file-port.ts'
import { QuickReads } from './quick-reads.ts'

/** Names by `f_type` of statfs(2) on Linux: file systems behind a server or another program, which may stop responding. */
export const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'nfs'],
  [0x517b, 'smb'],
  [0xff534d42, 'cifs'],
  [0xfe534d42, 'smb2'],
  [0x01021997, '9p'],
  // sshfs, rclone and the like
  [0x65735546, 'fuse'],
  [0x00c36400, 'ceph'],
  [0x5346414f, 'afs'],
  // of the kernel
  [0x6b414653, 'afs'],
  [0x0bd00bd0, 'lustre']
])

/**
 * If the folder is on such a file system, keeps reads off the event loop's thread (see `QuickReads`): a server that
 * stops responding would block every request. Returns a function that ends this. An unknown type counts as local.
 */
export async function holdOffOnNetworkFileSystem(port: FilePort, path: string): Promise<() => void> {
  return (await isOnNetworkFileSystem(port, path)) ? QuickReads.holdOff() : () => undefined
}

/** Whether the folder is on a file system that may stop responding. An unknown type counts as local. */
export const isOnNetworkFileSystem = (port: Pick<FilePort, 'statfs'>, path: string): Promise<boolean> =>
  isOnFileSystem(port, path, NETWORK_FILE_SYSTEMS)

/** Whether a path is on a file system of one of these types (`f_type` of statfs(2) on Linux). False where that is unknown. */
export async function isOnFileSystem(
  port: Pick<FilePort, 'statfs'>,
  path: string,
  types: { has(type: number): boolean }
): Promise<boolean> {
  if (process.platform !== 'linux') return false
  try {
    return types.has((await port.statfs(path)).type >>> 0)
  } catch {
    return false
  }
}
