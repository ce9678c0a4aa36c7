// What leaves the store is what came in: folders of views and of the hub's mirror, byte for byte with upstream.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { OpenResult } from '@svc/client/protocol'
import type { FakeRepo } from '@svc/testkit/fake-hub'
import { expect } from 'vitest'
import { importRepo, type Rig } from './fixtures.ts'

type Folder = ReadonlyMap<string, Buffer>

/** All files below a folder but the marker of a view. */
export function readFolder(folder: string): Folder {
  return new Map(
    readdirSync(folder, { recursive: true })
      .map(String)
      .filter((name) => name !== '.svc-view.json' && statSync(join(folder, name)).isFile())
      .map((name) => [name, readFileSync(join(folder, name))])
  )
}

/** What a client of the hub downloads of a repository: all files that the mirror lists. */
async function downloaded(mirror: string, repo: string, commit: string): Promise<Folder> {
  const info = await fetch(`http://${mirror}/api/models/${repo}/revision/${commit}`)
  expect(info.status).toBe(200)
  const { siblings } = (await info.json()) as { siblings: { rfilename: string }[] }
  const files = new Map<string, Buffer>()
  for (const { rfilename } of siblings) {
    const path = rfilename.split('/').map(encodeURIComponent).join('/')
    const answer = await fetch(`http://${mirror}/${repo}/resolve/${commit}/${path}`)
    expect([rfilename, answer.status]).toEqual([rfilename, 200])
    files.set(rfilename, Buffer.from(await answer.arrayBuffer()))
  }
  return files
}

/** Imports a repository of the hub and compares every folder that leaves the store. */
export async function expectWhole(rig: Rig, repo: FakeRepo, mirror: string): Promise<void> {
  const upstream = new Map(repo.files.map(({ path, content }) => [path, Buffer.from(content as Uint8Array)]))
  rig.fake.commit(repo)
  const job = await importRepo(rig, repo.id)
  expect(job.error).toBeUndefined()
  expect(job.state).toBe('done')
  const as = repo.id.toLowerCase()
  const weightsOf = new Map<string, ReadonlySet<string>>()
  const opened = new Map<string, OpenResult>()
  for (const quant of job.result!.quants!) {
    const open = await rig.client.open(`svc:///${as}:${quant}`)
    opened.set(quant, open)
    weightsOf.set(quant, new Set(open.files.flatMap(({ kind, name }) => (kind === 'weights.gguf' ? [name!] : []))))
  }
  const [{ companions } = {}] = [...opened.values()]
  const isLeftOut = new Set(companions!.omitted.filter(({ reason }) => reason !== 'artifact').map(({ path }) => path))
  // nothing is left out but what is too large
  for (const path of isLeftOut) expect([path, upstream.get(path)!.length > 1 << 20]).toEqual([path, true])
  const whole = new Map([...upstream].filter(([path]) => !isLeftOut.has(path)))
  for (const quant of opened.keys()) {
    const others = new Set([...weightsOf].flatMap(([other, names]) => (other === quant ? [] : [...names])))
    const expected = new Map([...whole].filter(([path]) => !others.has(path)))
    for (const layout of ['files', 'hf'] as const) {
      const { folder, warnings } = await rig.client.makeView({ ref: `svc:///${as}:${quant}`, layout })
      expectSame(readFolder(folder), expected)
      expect(warnings).toBeUndefined()
    }
  }
  expectSame(await downloaded(mirror, repo.id, rig.fake.commit(repo)), whole)
}

export function expectSame(found: Folder, expected: Folder): void {
  expect([...found.keys()].sort()).toEqual([...expected.keys()].sort())
  for (const [name, bytes] of expected) expect([name, found.get(name)!.equals(bytes)]).toEqual([name, true])
}
