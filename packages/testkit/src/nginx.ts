import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ended, listening, onFreePort } from './free-port.ts'

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
export function startNginx(folder: string, root: string): Promise<Nginx> {
  return onFreePort((port) => start(folder, root, port))
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
  await listening('nginx', child, port)
  return {
    url: `http://127.0.0.1:${port}/`,
    stop: () => ended(child)
  }
}
