import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ended, listening, onFreePort } from './free-port.ts'

/** Debian's opentracker. With SVC_REQUIRE_INTEROP=1 tests run regardless, and fail without it. */
export const haveOpentracker: boolean =
  process.env.SVC_REQUIRE_INTEROP === '1' || spawnSync('opentracker', ['-h']).error === undefined

/** A tracker in C on loopback, HTTP and UDP on one port. */
export interface Opentracker {
  readonly http: string
  readonly udp: string
  stop(): Promise<void>
}

/** Starts it for these infohashes (40 hex characters each) alone. `folder`: its own, which anybody may read, since it gives up root. */
export function startOpentracker(folder: string, infohashes: readonly string[]): Promise<Opentracker> {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'allowed'), infohashes.map((hash) => `${hash}\n`).join(''))
  chmodSync(join(folder, 'allowed'), 0o644)
  chmodSync(folder, 0o755)
  return onFreePort(async (port) => {
    const local = '127.0.0.1'
    const sockets = ['-i', local, '-p', String(port), '-i', local, '-P', String(port)]
    // as root it makes the folder its root; the list is looked for from there
    const child = spawn('opentracker', [...sockets, '-d', folder, '-w', 'allowed'], { stdio: 'ignore', cwd: folder })
    await listening('opentracker', child, port)
    return {
      http: `http://${local}:${port}/announce`,
      udp: `udp://${local}:${port}/announce`,
      stop: () => ended(child)
    }
  })
}
