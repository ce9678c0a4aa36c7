import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

const has = (program: string): boolean => spawnSync(program, ['--version']).error === undefined
const required = process.env.SVC_REQUIRE_INTEROP === '1'

/** Debian's docker-registry, the reference implementation of the distribution specification. */
export const haveRegistry: boolean = required || has('docker-registry')
/** An independent client of registries and layouts. */
export const haveSkopeo: boolean = required || has('skopeo')

/** A registry on a loopback port. */
export interface TestRegistry {
  /** `127.0.0.1:port` */
  readonly address: string
  stop(): Promise<void>
}

/** Additional lines of the registry's configuration, for the `auth` section and the like. */
export interface RegistrySettings {
  readonly yaml?: string
}

/** Starts a registry that stores its blobs below `folder`. */
export async function startRegistry(folder: string, { yaml = '' }: RegistrySettings = {}): Promise<TestRegistry> {
  const address = `127.0.0.1:${await freePort()}`
  mkdirSync(folder, { recursive: true })
  const config = join(folder, 'config.yml')
  writeFileSync(
    config,
    `version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: ${join(folder, 'blobs')}}}\nhttp: {addr: "${address}"}\n${yaml}`
  )
  const child = spawn('docker-registry', ['serve', config], { stdio: 'ignore' })
  await answering(`http://${address}/v2/`, child)
  return {
    address,
    stop: () =>
      new Promise((done) => {
        child.once('exit', () => done())
        child.kill()
      })
  }
}

async function answering(url: string, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    if (child.exitCode !== null) throw new Error(`docker-registry ended with ${child.exitCode}`)
    if (
      await fetch(url).then(
        (answer) => answer.status < 500,
        () => false
      )
    )
      return
    await new Promise((done) => setTimeout(done, 50))
  }
  throw new Error('docker-registry does not answer')
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number }
      probe.close((error) => (error === undefined ? resolve(port) : reject(error)))
    })
  })
}

/** Runs skopeo with a policy that accepts everything. @throws Error with its output */
export function skopeo(...args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const all = ['--insecure-policy', ...args]
    execFile('skopeo', all, { encoding: 'utf8', timeout: 60_000 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`skopeo ${args.join(' ')}: ${stderr}`, { cause: error }))
    })
  })
}
