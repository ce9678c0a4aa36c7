// containerd, configured by hosts.toml, pulls through the OCI mirror what is not here yet. It needs containerd and root.
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { ApiClient } from '../support/daemon.ts'
import { contentOf, kindOf, startWebseed } from '../swarm/fake-webseed.ts'
import { eventually, MIB, Node, pinned, weights } from '../swarm/nodes.ts'

const haveContainerd = process.getuid?.() === 0 && spawnSync('containerd', ['--version']).error === undefined
const TRACKER = 'http://127.0.0.1:1/announce'

interface Containerd {
  ctr(...args: string[]): Promise<string>
}

/** A separate containerd, without the parts that need the kernel. */
async function startContainerd(folder: string): Promise<Containerd> {
  mkdirSync(folder, { recursive: true })
  const address = join(folder, 'c.sock')
  const config = join(folder, 'config.toml')
  const paths = `root = "${join(folder, 'root')}"\nstate = "${join(folder, 'state')}"`
  writeFileSync(
    config,
    `version = 2\n${paths}\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\n  address = "${address}"\n`
  )
  const child: ChildProcess = spawn('containerd', ['--config', config, '--log-level', 'error'], { stdio: 'ignore' })
  const over = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  onTestFinished(async () => {
    child.kill()
    await over
  })
  const ctr = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)('ctr', ['--address', address, ...args])).stdout
  await eventually(() => ctr('version').catch(() => undefined))
  return { ctr }
}

test.skipIf(!haveContainerd)('containerd fetches an artifact while it arrives', async () => {
  const seed = await Node.start()
  const content = weights(4 * MIB + 7, 71)
  const files = { 'model-q8_0.gguf': content, 'config.json': '{"model_type":"llama"}', 'tokenizer.json': '{}' }
  const share = await seed.publish(files, 'acme/model')
  let open = false
  const webseed = await startWebseed(await contentOf(share), (path, _request, response) => {
    if (open || kindOf(path) !== 'file') return false
    response.writeHead(503, { 'Retry-After': '1' }).end()
    return true
  })
  const node = await Node.start({ mirror: { oci_addr: '127.0.0.1:0' }, swarm: { fill_timeout: 600 } })
  const { peers: _, ...body } = pinned(share, { webseeds: [webseed.url], trackers: [TRACKER], as: 'acme/model' })
  await node.client.importBt(body)
  await eventually(() => (webseed.requests.some((path) => kindOf(path) === 'file') ? true : undefined))

  const address = JSON.parse(readFileSync(join(node.folder, 'runtime.json'), 'utf8')).ociMirrorAddress
  const hosts = join(node.folder, 'certs.d')
  mkdirSync(join(hosts, 'models.example'), { recursive: true })
  writeFileSync(
    join(hosts, 'models.example/hosts.toml'),
    `server = "http://${address}"\n[host."http://${address}"]\n  capabilities = ["pull", "resolve"]\n`
  )
  const containerd = await startContainerd(join(node.folder, 'containerd'))
  const fetched = containerd.ctr('content', 'fetch', '--hosts-dir', hosts, 'models.example/acme/model:q8_0')
  fetched.catch(() => undefined)
  const isWaiting = async (): Promise<true | undefined> => {
    const { bytes } = await new ApiClient(node.running.socketPath).get('/svcd/metrics')
    return /^svc_mirror_waiting [1-9]/m.test(bytes.toString()) ? true : undefined
  }
  await eventually(isWaiting)
  open = true
  await fetched
  const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`
  expect(await containerd.ctr('content', 'ls')).toContain(digest)
})
