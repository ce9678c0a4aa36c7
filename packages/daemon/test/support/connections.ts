import { readdirSync, readlinkSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'

/** Descriptors of this process, in which the daemon runs, that lead to a blob. */
export const openBlobs = (): number =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes('/blobs/')
    } catch {
      return false
    }
  }).length

export const connected = (path: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = createConnection({ path }, () => resolve(socket))
    socket.on('error', reject)
  })
