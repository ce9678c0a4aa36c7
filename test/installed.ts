// An installation of svc, used through its programs alone.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Installed {
  /** Runs the daemon while `work` does; `svc` gives what a command prints, and throws where it fails. */
  withDaemon(work: (svc: (...args: string[]) => Promise<string>) => Promise<void>): Promise<void>
}

export interface As {
  readonly uid: number
  readonly gid: number
}

/** `bin` holds `svc` and `svcd`; nothing else of this machine's is on their PATH but the system's. Store and socket lie below `home`. */
export function useInstalled(bin: string, home: string, as?: As): Installed {
  const config = join(home, 'config.toml')
  const env = {
    HOME: home,
    XDG_RUNTIME_DIR: join(home, 'run'),
    SVC_CONFIG: config,
    PATH: `${bin}:/usr/bin:/bin`
  }
  const options = { env, cwd: '/', ...as }
  const svc = async (...args: string[]): Promise<string> => (await run(join(bin, 'svc'), args, options)).stdout
  return {
    async withDaemon(work) {
      mkdirSync(env.XDG_RUNTIME_DIR, { recursive: true, mode: 0o700 })
      if (as !== undefined) chownSync(env.XDG_RUNTIME_DIR, as.uid, as.gid)
      writeFileSync(config, '[swarm]\nenabled = false\n')
      const daemon = spawn(join(bin, 'svcd'), [], { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
      const ended = once(daemon, 'close')
      let said = ''
      try {
        await new Promise<void>((listening, failed) => {
          daemon.stderr.setEncoding('utf8').on('data', (text: string) => {
            said += text
            if (said.includes('"msg":"listening"')) listening()
          })
          daemon.once('error', failed)
          ended.then(() => failed(new Error(`svcd ended: ${said}`)))
        })
        await work(svc)
      } finally {
        // the launcher became the daemon: the signal reaches it.
        daemon.kill('SIGTERM')
        await ended
      }
      if (daemon.exitCode !== 0) throw new Error(`svcd ended with ${daemon.exitCode ?? daemon.signalCode}: ${said}`)
    }
  }
}
