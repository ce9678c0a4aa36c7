import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Client, createClient } from '../src/index.ts'
import { PATHS } from '../src/protocol.ts'

const REF = 'svc:///acme/tiny:q8_0'
const DIGEST = `sha256:${'0'.repeat(64)}`
const TAG = { ns: 'acme', name: 'tiny', tag: 'v1' }

/** A call of each method that sends one; a method without a row does not compile. */
const CALLS: Readonly<
  Record<
    Exclude<keyof Client, 'socketPath' | 'watchJob' | 'waitJob' | 'close'>,
    (client: Client) => Promise<unknown> | readonly Promise<unknown>[]
  >
> = {
  resolve: (client) => client.resolve(REF),
  open: (client) => client.open(REF),
  ensure: (client) => client.ensure({ ref: REF }),
  importLocal: (client) => client.importLocal({ paths: ['/m'], as: 'acme/tiny' }),
  importHf: (client) => client.importHf({ repo: 'acme/tiny' }),
  planHf: (client) => client.planHf({ repo: 'acme/tiny' }),
  inspectHf: (client) => client.inspectHf({ repo: 'acme/tiny' }),
  importBt: (client) => client.importBt({ infohash: 'btmh:1220', manifestDigest: DIGEST }),
  importCatalog: (client) => client.importCatalog({ repo: 'acme/tiny' }),
  importOci: (client) => client.importOci({ image: 'registry.test/tiny', as: 'acme/tiny' }),
  companions: (client) => client.companions({ ref: REF }),
  searchCatalog: (client) => client.searchCatalog('tiny'),
  search: (client) => client.search({ q: 'tiny' }),
  hubAccount: (client) => client.hubAccount({ token: 'x' }),
  verify: (client) => client.verify({ target: 'all' }),
  models: (client) => client.models(),
  removeModel: (client) => [client.removeModel(TAG), client.removeModel({ ...TAG, quant: 'q8_0' })],
  giveName: (client) => client.giveName({ from: 'acme/tiny', as: 'acme/other' }),
  unpin: (client) => client.unpin(DIGEST),
  tags: (client) => client.tags(),
  tag: (client) => client.tag(TAG),
  setTag: (client) => client.setTag(TAG),
  removeTag: (client) => client.removeTag(TAG),
  gc: (client) => client.gc(),
  evict: (client) => client.evict({ ref: REF }),
  makeSnapshot: (client) => client.makeSnapshot(),
  holdSnapshot: (client) => client.holdSnapshot('1'),
  releaseSnapshot: (client) => client.releaseSnapshot('1'),
  outdated: (client) => client.outdated(),
  setPrivate: (client) => client.setPrivate({ ref: REF, private: true }),
  setPinned: (client) => client.setPinned({ ref: REF, pinned: true }),
  status: (client) => client.status(),
  decideSeed: (client) => client.decideSeed({ seed: true }),
  decideSeedLocal: (client) => client.decideSeedLocal({ seedLocal: true }),
  peers: (client) => client.peers(),
  limitUpload: (client) => client.limitUpload({ bytesPerSecond: 1 }),
  limitDownload: (client) => client.limitDownload({ bytesPerSecond: 0 }),
  share: (client) => client.share(REF),
  why: (client) => client.why(REF),
  joinShare: (client) => client.joinShare(REF),
  adopt: (client) => client.adopt({ as: 'acme/tiny', files: [] }),
  planAdopt: (client) => client.planAdopt({ as: 'acme/tiny', files: [] }),
  makeView: (client) => client.makeView({ ref: REF }),
  views: (client) => client.views(),
  removeView: (client) => client.removeView({ path: '/v' }),
  standingViews: (client) => client.standingViews(),
  addStandingView: (client) => client.addStandingView({ layout: 'hf', path: '/v' }),
  removeStandingView: (client) => client.removeStandingView({ path: '/v' }),
  job: (client) => client.job('1'),
  jobs: (client) => client.jobs(),
  cancelJob: (client) => client.cancelJob('1'),
  resumeJob: (client) => client.resumeJob('1'),
  headBlob: (client) => client.headBlob(DIGEST),
  readBlob: (client) => client.readBlob(DIGEST)
}

test('each route has a method, and each method a route', async () => {
  const asked = new Set<string>()
  const server = createServer(({ method, url = '' }, response) => {
    asked.add(`${method} ${url.split('?', 1)[0]}`)
    response.setHeader('content-type', 'application/json').end('{}')
  })
  const folder = mkdtempSync(join(tmpdir(), 'svc-client-'))
  const socketPath = join(folder, 's.sock')
  await new Promise<void>((resolve) => server.listen(socketPath, resolve))
  const client = createClient({ socketPath })
  onTestFinished(() => {
    client.close()
    server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  // what is answered fits none of them
  await Promise.allSettled(Object.values(CALLS).flatMap((call) => call(client)))
  const routes = Object.values(PATHS).map(({ method, path }) => ({
    line: `${method} ${path}`,
    pattern: new RegExp(`^${method} ${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`)
  }))
  expect(routes.flatMap(({ line, pattern }) => ([...asked].some((each) => pattern.test(each)) ? [] : [line]))).toEqual(
    []
  )
  expect([...asked].filter((each) => !routes.some(({ pattern }) => pattern.test(each)))).toEqual([])
})
