import { spawnSync } from 'node:child_process'
import { readFileSync, realpathSync } from 'node:fs'

/** A mounted file system. */
export interface Mount {
  readonly point: string
  readonly type: string
}

/** The type of the file system that a path lies on, as in mount(8); undefined for an unknown one. @throws the system's errors */
export const fileSystemType = (path: string, platform: NodeJS.Platform): string | undefined =>
  mountedType(platform === 'darwin' ? macMounts() : linuxMounts(), realpathSync(path))

/** Lines such as `/dev/sda1 /home/me/big\040disk ext4 rw 0 0` (proc_mounts(5)). */
const linuxMounts = (): Mount[] =>
  readFileSync('/proc/self/mounts', 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' '))
    .map(([, point = '', type = '']) => ({
      point: point.replace(/\\([0-7]{3})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 8))),
      type
    }))

const macMounts = (): Mount[] => parseMacMounts(spawnSync('/sbin/mount', { encoding: 'utf8' }).stdout ?? '')

/** The output of macOS's mount(8): `/dev/disk3s1 on /System/Volumes/Data (apfs, local, journaled)`. */
export const parseMacMounts = (text: string): Mount[] =>
  [...text.matchAll(/^.+? on (.+) \(([^,)]+)[^)]*\)$/gm)].map(([, point = '', type = '']) => ({ point, type }))

/** The type of the mount that `path` lies in; of several at one place the last. */
export function mountedType(mounts: readonly Mount[], path: string): string | undefined {
  const around = mounts.filter(({ point }) => `${path}/`.startsWith(point === '/' ? point : `${point}/`))
  const deepest = Math.max(...around.map(({ point }) => point.length))
  return around.findLast(({ point }) => point.length === deepest)?.type
}
