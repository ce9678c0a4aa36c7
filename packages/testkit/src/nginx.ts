import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'

/** Debian's nginx. With SVC_REQUIRE_INTEROP=1 tests run regardless, and fail without it. */
export const haveNginx: boolean =
  process.env.SVC_REQUIRE_INTEROP === '1' || spawnSync('nginx', ['-v']).error === undefined

/** A web server on loopback, as its package configures it but for where it listens and what it serves. */
export interface Nginx {
  /** Ends in a slash. */
  readonly url: string
  stop(): Promise<void>
}

/** Serves the files of `root`; what it needs for itself goes to `folder`. */
export async function startNginx(folder: string, root: string): Promise<Nginx> {
  for (let tries = 1; ; tries++) {
    const port = await freePort()
    try {
      return await start(folder, root, port)
    } catch (error) {
      // somebody may have taken the port between
      if (tries === 5) throw error
    }
  }
}

async function start(folder: string, root: string, port: number): Promise<Nginx> {
  mkdirSync(folder, { recursive: true })
  const config = join(folder, 'nginx.conf')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${join(folder, name)};`)
    .join(' ')
  writeFileSync(
    config,
    // a worker of root's own reads what tests have made for root
    `${process.geteuid?.() === 0 ? 'user root;' : ''} daemon off; worker_processes 1; pid ${join(folder, 'pid')}; error_log ${join(folder, 'error.log')};
events { worker_connections 256; }
http { access_log off; include /etc/nginx/mime.types; default_type application/octet-stream; gzip on; sendfile on; ${temporary}
  server { listen 127.0.0.1:${port}; location / { root ${root}; index index.html; } } }
`
  )
  const child = spawn('nginx', ['-c', config, '-e', join(folder, 'start.log')], { stdio: 'ignore' })
  await answering(child, port)
  return {
    url: `http://127.0.0.1:${port}/`,
    stop: async () => {
      if (child.exitCode !== null) return
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
    }
  }
}

async function answering(child: ChildProcess, port: number): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`)
    const socket = connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false
    )
    socket.destroy()
    if (isOpen && child.exitCode === null) return
    await new Promise((done) => setTimeout(done, 50))
  }
  throw new Error('nginx does not answer')
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
