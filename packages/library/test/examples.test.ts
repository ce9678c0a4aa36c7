// Each program in examples/ is short, and does what its first lines say.
import { execFile } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { localFiles, openLibrary } from '@svc/library'
import { haveLlamaCpp } from '@svc/testkit/llama-cpp'
import { makeLlamaGgufs } from '@svc/testkit/llama-gguf'
import { beforeAll, expect, onTestFinished, test } from 'vitest'

const examples = fileURLToPath(new URL('../../../examples/', import.meta.url))
async function run(name: string, ...args: string[]): Promise<string> {
  const words = ['--conditions=svc-source', '--disable-warning=ExperimentalWarning', join(examples, name), ...args]
  return (await promisify(execFile)(process.execPath, words)).stdout
}

let folder: string
let root: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-examples-'))
  root = join(folder, 'store')
  const models = join(folder, 'models')
  mkdirSync(models)
  writeFileSync(join(models, 'tiny-f32.gguf'), makeLlamaGgufs()[0]!)
  const library = await openLibrary({ root })
  await library.import(localFiles([models]), 'me/tiny')
  await library.close()
  return () => rmSync(folder, { recursive: true, force: true })
})

test.each(globSync('*.ts', { cwd: examples }))('%s has less than 30 lines', (name) => {
  expect(readFileSync(join(examples, name), 'utf8').trim().split('\n').length).toBeLessThan(30)
})

test('the launcher lists models, and starts a runtime on one', async () => {
  expect(await run('launcher.ts', root)).toMatch(/^svc:\/\/\/me\/tiny:f32 \d+ \n$/)
  const path = await run('launcher.ts', root, 'svc:///me/tiny:f32', 'echo', '-m')
  expect(readFileSync(path.trim().slice('-m '.length))).toEqual(readFileSync(join(folder, 'models/tiny-f32.gguf')))
})

test.skipIf(!haveLlamaCpp)('node-llama-cpp loads a model by its reference, and continues a text', async () => {
  expect((await run('answer.ts', root, 'svc:///me/tiny:f32', 'once')).trim()).not.toBe('')
})

test('a folder becomes an OCI image layout, whose layers are its files', async () => {
  const layout = join(folder, 'layout')
  onTestFinished(() => rmSync(layout, { recursive: true, force: true }))
  await run('image.ts', join(folder, 'models'), 'acme/tiny', layout)
  const read = (digest: string): Buffer => readFileSync(join(layout, 'blobs', digest.replace(':', '/')))
  const [entry] = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')).manifests
  const [weights] = JSON.parse(read(entry.digest).toString()).layers
  expect(read(weights.digest)).toEqual(readFileSync(join(folder, 'models/tiny-f32.gguf')))
})
