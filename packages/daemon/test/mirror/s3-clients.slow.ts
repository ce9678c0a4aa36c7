// Stock clients of object stores read a model by name: boto3, fsspec over Amazon's SDK for C++ (which vLLM's
// streamer is made of), and rclone.
import { execFile, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test, vi } from 'vitest'
import { mergeConfig } from '../../src/config/config.ts'
import { sharedByFile, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { MODEL, safetensors, writeFiles } from '../support/models.ts'
import { KEY } from './s3-client.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

const run = promisify(execFile)
const PYTHON = process.env.SVC_PYTHON_TOOLS ?? 'python3'
const isRequired = process.env.SVC_REQUIRE_INTEROP === '1'
/** In continuous integration `SVC_PYTHON_TOOLS` is set where Python's packages could be installed. */
const skipPython =
  spawnSync(PYTHON, ['-c', 'import boto3, fsspec, pyarrow']).status !== 0 &&
  !(isRequired && process.env.SVC_PYTHON_TOOLS !== undefined)
const skipRclone = spawnSync('rclone', ['version']).status !== 0 && !isRequired

const FILES = { ...MODEL, 'model.safetensors': safetensors(3_000_000) }
const PREFIX = 'acme/model/bf16/'
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

const mirror = sharedByFile(async (cleanUp) => {
  const folder = temporaryFolder(cleanUp)
  const keys = join(folder, 'keys')
  writeFileSync(keys, `${KEY.id}:${KEY.secret}\n`, { mode: 0o600 })
  const file = { swarm: { enabled: false }, mirror: { s3_addr: '127.0.0.1:0', s3_keys: keys } }
  const daemon = await testDaemon({ folder, config: mergeConfig(file, { root: join(folder, 'root') }, {}) }, cleanUp)
  const source = temporaryFolder(cleanUp)
  writeFiles(source, FILES)
  await daemon.import([source], 'acme/model')
  const { s3MirrorAddress } = JSON.parse(readFileSync(join(folder, 'runtime.json'), 'utf8'))
  return `http://${s3MirrorAddress}`
})

/** The files of the source that the bucket has. */
function expectSame(found: Readonly<Record<string, string>>): void {
  const names = Object.keys(found).map((key) => key.slice(PREFIX.length))
  for (const name of ['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json'])
    expect(names).toContain(name)
  const wrong = names.filter(
    (name) =>
      Object.hasOwn(FILES, name) && found[PREFIX + name] !== sha256(Buffer.from(FILES[name as keyof typeof FILES]))
  )
  expect(wrong).toEqual([])
}

test.skipIf(skipPython)('boto3 and fsspec can list, read and verify the bucket, and nothing else', async () => {
  const endpoint = await mirror()
  const script = fileURLToPath(new URL('./s3_clients.py', import.meta.url))
  const { stdout } = await run(PYTHON, [script, endpoint, PREFIX, KEY.id, KEY.secret])
  const { boto3, fsspec } = JSON.parse(stdout)
  expect(boto3).toMatchObject({
    buckets: ['models'],
    location: null,
    folders: ['acme/'],
    head: boto3.listed,
    'first version': Object.keys(boto3.listed),
    parts: sha256(FILES['model.safetensors']),
    refused: [
      'MethodNotAllowed',
      'MethodNotAllowed',
      'NoSuchKey',
      'SignatureDoesNotMatch',
      'InvalidAccessKeyId',
      'InvalidRange'
    ]
  })
  expectSame(boto3.whole)
  const presigned = await fetch(boto3.presigned)
  expect(sha256(Buffer.from(await presigned.arrayBuffer()))).toBe(sha256(FILES['model.safetensors']))
  expect(fsspec).toEqual(boto3.whole)
})

test.skipIf(skipRclone)('rclone copies it, and finds nothing to copy then', async () => {
  const target = join(temporaryFolder(), 'model')
  // nothing else of this environment: rclone takes no certificates from it
  const env = { PATH: process.env.PATH, AWS_ACCESS_KEY_ID: KEY.id, AWS_SECRET_ACCESS_KEY: KEY.secret, HOME: target }
  const rclone = async (...args: string[]): Promise<string> => {
    const ran = await run('rclone', [...args, '--s3-endpoint', await mirror(), '--retries', '1', '-v'], { env })
    return ran.stderr
  }
  const source = `:s3,provider=Other,env_auth:models/${PREFIX}`
  await rclone('copy', source, target, '--multi-thread-streams', '4', '--multi-thread-cutoff', '1M')
  const paths = readdirSync(target, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
  expectSame(
    Object.fromEntries(paths.map((path) => [PREFIX + path.slice(target.length + 1), sha256(readFileSync(path))]))
  )
  expect(await rclone('copy', source, target)).toContain('nothing to transfer')
})
