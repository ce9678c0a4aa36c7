// rclone copies a model from the S3 mirror while its owner imports it from the hub, and again when it is done.
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test, vi } from 'vitest'
import { fakeHub, finished, MIT, rigOf, safetensors, tempFolder, undoAfterTests } from '../sources/hub/fixtures.ts'

vi.setConfig({ testTimeout: 120_000 })
undoAfterTests()

const run = promisify(execFile)
const skipRclone = spawnSync('rclone', ['version']).status !== 0 && process.env.SVC_REQUIRE_INTEROP !== '1'
const FILES = {
  'model.safetensors': Buffer.from(safetensors('BF16', 2_000_000)),
  'config.json': Buffer.from('{"model_type":"llama"}'),
  'tokenizer.json': Buffer.from('{"version":"1.0"}'),
  LICENSE: Buffer.from(MIT)
}
/** Clients see times in whole seconds. */
const SECONDS_MS = 2_100

test.skipIf(skipRclone)(
  'rclone copies a model that is being imported, and transfers nothing once it is here',
  async () => {
    const files = Object.entries(FILES).map(([path, content]) => ({ path, content }))
    const fake = await fakeHub({ repos: [{ id: 'Acme/M', files }] })
    const weights = Promise.withResolvers<void>()
    let isHeld = true
    fake.setFaults(({ stage, path, headers: { range = '' } }) => {
      const [, end = Infinity] = /^bytes=0-(\d+)$/.exec(range) ?? []
      const isWeights = isHeld && path === 'model.safetensors' && Number(end) >= 1_000_000
      return stage === 'cdn' && isWeights ? { kind: 'hold', until: weights.promise } : undefined
    })
    const rig = await rigOf(fake, {
      mirror: { s3_addr: '127.0.0.1:0' },
      hub: { limits: { rangeBytes: 1 << 20 } }
    })
    const { s3MirrorAddress } = JSON.parse(readFileSync(join(dirname(rig.daemon.socketPath), 'runtime.json'), 'utf8'))
    const target = join(await tempFolder(), 'model')
    // nothing else of this environment: rclone takes no certificates from it
    const env = { PATH: process.env.PATH, HOME: target }
    const rclone = async (): Promise<string> => {
      const source = `:s3,provider=Other,endpoint="http://${s3MirrorAddress}":models/acme/m/bf16/`
      return (await run('rclone', ['copy', source, target, '--retries', '1', '-v'], { env })).stderr
    }
    const job = await rig.client.importHf({ repo: 'Acme/M' })
    await vi.waitUntil(() => rig.daemon.context.coming.imports.length > 0, { timeout: 30_000 })
    const copying = rclone()
    await new Promise((resolve) => setTimeout(resolve, SECONDS_MS))
    expect((await rig.client.job(job.id)).state).toBe('fetching')
    isHeld = false
    weights.resolve()
    await copying
    expect((await finished(rig, job)).state).toBe('done')
    for (const [name, bytes] of Object.entries(FILES)) expect(readFileSync(join(target, name)).equals(bytes)).toBe(true)
    expect(await rclone()).toContain('nothing to transfer')
  }
)
