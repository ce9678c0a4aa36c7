import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Certificate } from './certificate.ts'
import { versionOf } from './command.ts'
import { end } from './daemon.ts'
import { childrenOf, cpuSecondsOf } from './process-facts.ts'

const START_TIMEOUT_MS = 5_000

export const hasNginx = (): boolean => versionOf('nginx', '-v') !== undefined

/** nginx with one worker and an otherwise default configuration. */
export class Nginx {
  readonly #process: ChildProcess
  /** The Unix socket path or the base URL `https://127.0.0.2:<port>`. */
  readonly address: string

  private constructor(address: string, child: ChildProcess) {
    this.address = address
    this.#process = child
  }

  /** Listens on a Unix socket in `folder`, and serves the same file for every path. */
  static async start(folder: string, file: string, { sendfile }: { readonly sendfile: boolean }): Promise<Nginx> {
    const socketPath = join(folder, 'nginx.sock')
    const server = `listen unix:${socketPath}; location / { root /; rewrite ^ ${file} break; }`
    return new Nginx(socketPath, await run(folder, server, sendfile, () => connect(socketPath)))
  }

  /** Serves the files of `root` over TLS on a separate loopback address, like a CDN. */
  static async startTls(folder: string, root: string, { key, certificate }: Certificate): Promise<Nginx> {
    const port = await freePort(CDN_HOST)
    const server =
      `listen ${CDN_HOST}:${port} ssl; ssl_certificate ${certificate}; ssl_certificate_key ${key}; ` +
      `ssl_protocols TLSv1.2 TLSv1.3; location / { root ${root}; }`
    const child = await run(folder, server, true, () => connect(port, CDN_HOST))
    return new Nginx(`https://${CDN_HOST}:${port}`, child)
  }

  get socketPath(): string {
    return this.address
  }

  /** The process id of its worker. */
  cpuSeconds(): number {
    return childrenOf(this.#process.pid!).reduce((sum, pid) => sum + cpuSecondsOf(pid), 0)
  }

  stop(): Promise<void> {
    return end(this.#process)
  }
}

const CDN_HOST = '127.0.0.2'

async function run(folder: string, server: string, sendfile: boolean, dial: () => Socket): Promise<ChildProcess> {
  const temporary = join(folder, 'tmp')
  mkdirSync(temporary, { recursive: true })
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${temporary};`)
  const configPath = join(folder, 'nginx.conf')
  writeFileSync(
    configPath,
    [
      // the worker has to read files that belong to the current user
      ...(process.geteuid?.() === 0 ? ['user root;'] : []),
      `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log stderr error;`,
      'events { worker_connections 1024; }',
      `http { access_log off; ${paths.join(' ')} sendfile ${sendfile ? 'on' : 'off'}; keepalive_requests 1000000000;`,
      `default_type application/octet-stream; server { ${server} } }`
    ].join('\n')
  )
  const child = spawn('nginx', ['-p', folder, '-c', configPath], { stdio: ['ignore', 'ignore', 'inherit'] })
  const begun = performance.now()
  for (;;) {
    const socket = dial()
    const answer = await Promise.race([once(socket, 'connect'), once(socket, 'error')]).then(
      ([error]) => error as Error | undefined,
      (error: Error) => error
    )
    socket.destroy()
    if (answer === undefined) return child
    if (child.exitCode !== null || performance.now() - begun > START_TIMEOUT_MS) {
      child.kill('SIGKILL')
      throw new Error('nginx did not start', { cause: answer })
    }
    await delay(10)
  }
}

async function freePort(host: string): Promise<number> {
  const server = createServer().listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
