import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { versionOf } from './command.ts'
import { end } from './daemon.ts'
import { childrenOf, cpuSecondsOf } from './process-facts.ts'

const START_TIMEOUT_MS = 5_000

export const hasNginx = (): boolean => versionOf('nginx', '-v') !== undefined

/** nginx with one worker on a Unix socket, serving one file at any address, and nothing else of its configuration tuned. */
export class Nginx {
  readonly socketPath: string
  readonly #process: ChildProcess

  private constructor(socketPath: string, child: ChildProcess) {
    this.socketPath = socketPath
    this.#process = child
  }

  static async start(folder: string, file: string, { sendfile }: { readonly sendfile: boolean }): Promise<Nginx> {
    const temporary = join(folder, 'tmp')
    mkdirSync(temporary, { recursive: true })
    const socketPath = join(folder, 'nginx.sock')
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${temporary};`)
    const configPath = join(folder, 'nginx.conf')
    writeFileSync(
      configPath,
      [
        // the worker must read what belongs to whoever runs this
        ...(process.geteuid?.() === 0 ? ['user root;'] : []),
        `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log stderr error;`,
        'events { worker_connections 1024; }',
        `http { access_log off; ${paths.join(' ')} sendfile ${sendfile ? 'on' : 'off'}; keepalive_requests 1000000000;`,
        'default_type application/octet-stream;',
        `server { listen unix:${socketPath}; location / { root /; rewrite ^ ${file} break; } } }`
      ].join('\n')
    )
    const child = spawn('nginx', ['-p', folder, '-c', configPath], { stdio: ['ignore', 'ignore', 'inherit'] })
    const begun = performance.now()
    for (;;) {
      const socket = connect(socketPath)
      const answer = await Promise.race([once(socket, 'connect'), once(socket, 'error')]).then(
        ([error]) => error as Error | undefined,
        (error: Error) => error
      )
      socket.destroy()
      if (answer === undefined) return new Nginx(socketPath, child)
      if (child.exitCode !== null || performance.now() - begun > START_TIMEOUT_MS) {
        child.kill('SIGKILL')
        throw new Error('nginx did not start', { cause: answer })
      }
      await delay(10)
    }
  }

  /** Of its worker. */
  cpuSeconds(): number {
    return childrenOf(this.#process.pid!).reduce((sum, pid) => sum + cpuSecondsOf(pid), 0)
  }

  stop(): Promise<void> {
    return end(this.#process)
  }
}
