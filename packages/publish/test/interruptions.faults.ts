// Kills at every step of a publication, and a disk that is full in the middle of one.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { haveS3Server, startS3Server } from '@svc/testkit/s3-server'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openTarget, publish } from '../src/index.ts'
import { makeModel, type TestModel, temporaryFolder } from './fixture.ts'

const CHILD = new URL('./publisher-child.ts', import.meta.url).pathname

/** @returns the steps that it took; undefined when it was killed */
function run(
  folder: string,
  { input }: TestModel,
  place: string,
  killAt: number,
  env = {}
): Promise<number | undefined> {
  const model = JSON.stringify({ ...input, folder, manifest: Buffer.from(input.manifest).toString('base64') })
  const child = spawn(process.execPath, ['--conditions=svc-source', CHILD, model, place, String(killAt)], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  return new Promise((resolve, reject) => {
    child.once('close', (code, signal) => {
      if (signal === 'SIGKILL') resolve(undefined)
      else if (code === 0) resolve(Number(said))
      else reject(new Error(`it ended with ${code}`))
    })
  })
}

/** Evenly spread steps, from the first to the last: each takes a process of its own. */
const spread = (steps: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => 1 + Math.round((i * (steps - 1)) / (count - 1)))

test('after a kill at any step, a folder has only whole files, and the next run completes', async () => {
  const folder = temporaryFolder()
  const model = makeModel(folder, { sizeBytes: 3_200_000 })
  const publication = await model.publication()
  const wanted = new Map(publication.objects.map((object) => [object.key, object]))
  const steps = (await run(folder, model, join(temporaryFolder(), 'out'), 0))!
  expect(steps).toBeGreaterThan(20)
  const growing = join(temporaryFolder(), 'out')
  for (const [i, at] of spread(steps, 9).entries()) {
    // every third starts anew; the others continue from what the last kill left
    if (i % 3 === 0) rmSync(growing, { recursive: true, force: true })
    await run(folder, model, growing, at)
    const names = globSync('**', { cwd: growing, withFileTypes: true }).filter((entry) => entry.isFile())
    for (const entry of names) {
      const key = join(entry.parentPath, entry.name).slice(growing.length + 1)
      if (key.startsWith('.svc-publish/') || /^index\.(html|json)$/.test(key)) continue
      const object = wanted.get(key)
      expect(object, key).toBeDefined()
      const bytes = object!.content instanceof Uint8Array ? object!.content : readFileSync(object!.content.path)
      expect(readFileSync(join(growing, key)).equals(bytes), `${key} after step ${at}`).toBe(true)
    }
    if (existsSync(join(growing, 'index.json'))) {
      expect(names.length).toBeGreaterThanOrEqual(wanted.size)
      JSON.parse(readFileSync(join(growing, 'index.json'), 'utf8'))
    }
  }
  await run(folder, model, growing, 0)
  expect(readdirSync(growing)).not.toContain('.svc-publish')
})

describe.skipIf(!haveS3Server)('a bucket', () => {
  test('after a kill at any step it has only whole objects, and the next run completes', async () => {
    const folder = temporaryFolder()
    const server = await startS3Server(join(temporaryFolder(), 's3'))
    onTestFinished(() => server.stop())
    const model = makeModel(folder, { sizeBytes: 700_000 })
    const publication = await model.publication()
    const steps = (await run(folder, model, `s3://${server.bucket}/once`, 0, server.env))!
    for (const [i, at] of spread(steps, 6).entries()) {
      const prefix = `killed-${Math.floor(i / 3)}`
      await run(folder, model, `s3://${server.bucket}/${prefix}`, at, server.env)
      for (const { key, content } of publication.objects) {
        const path = `${prefix}/${key}`.split('/').map(encodeURIComponent).join('/')
        const answer = await fetch(`${server.publicUrl}${path}`)
        const body = Buffer.from(await answer.arrayBuffer())
        if (answer.status === 404) continue
        const bytes = content instanceof Uint8Array ? content : readFileSync(content.path)
        expect(body.equals(bytes), `${key} after step ${at}`).toBe(true)
      }
    }
    await run(folder, model, `s3://${server.bucket}/killed-0`, 0, server.env)
    expect((await fetch(`${server.publicUrl}killed-0/index.json`)).status).toBe(200)
  })
})

const isRoot = process.geteuid?.() === 0

test.skipIf(!isRoot)('a full disk is reported; with more room the same call resumes', async () => {
  const disk = join(temporaryFolder(), 'disk')
  mkdirSync(disk)
  const mount = (...args: string[]) => spawnSync('mount', args, { encoding: 'utf8' })
  expect(mount('-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk).status).toBe(0)
  onTestFinished(() => void spawnSync('umount', [disk]))
  const publication = await makeModel(temporaryFolder(), { sizeBytes: 3_000_000 }).publication()
  const target = await openTarget({ kind: 'folder', path: disk })
  onTestFinished(() => target.close())
  await expect(publish([publication], target)).rejects.toMatchObject({ code: 'E_NO_SPACE' })
  expect(readdirSync(disk)).toEqual(['.svc-publish'])
  // as if the space ran out while it writes
  const weights = publication.objects.find(({ key }) => key.endsWith('.gguf'))!
  await expect(target.put(weights, {})).rejects.toMatchObject({ code: 'E_NO_SPACE' })
  expect(existsSync(join(disk, weights.key))).toBe(false)
  expect(mount('-o', 'remount,size=20m', disk).status).toBe(0)
  let read = 0
  await publish([publication], target, { onProgress: ({ bytesDone }) => (read = Math.max(read, bytesDone)) })
  expect(readFileSync(join(disk, weights.key)).length).toBe(3_000_000)
  writeFileSync(join(disk, 'other'), 'others may write there, too')
})
