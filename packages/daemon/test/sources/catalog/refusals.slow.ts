import { describe, expect, test } from 'vitest'
import {
  catalog,
  finished,
  freshSources,
  GGUF,
  hub,
  line,
  pull,
  REPO,
  refusal,
  start,
  weights
} from './catalog-fixture.ts'

freshSources()

describe('the error table', () => {
  test('bodies', async () => {
    const { client } = await start()
    for (const body of [
      {},
      { repo: 5 },
      { repo: 'no-slash' },
      { repo: REPO, peers: 'x' },
      { repo: REPO, peers: ['nowhere'] },
      { repo: REPO, as: 'A/B' },
      { repo: REPO, as: 'svc/x' },
      { repo: REPO, trustCatalog: 1 }
    ]) {
      expect(await refusal(client.importCatalog(body as never)), JSON.stringify(body)).toMatchObject({
        code: 'E_BAD_REQUEST',
        status: 400
      })
    }
  })
  test('not listed', async () => {
    const { client } = await start()
    expect(await refusal(client.importCatalog({ repo: 'Org/None' }))).toMatchObject({
      code: 'E_UNKNOWN_REF',
      status: 400
    })
    catalog.fail(404)
    expect(await refusal(client.importCatalog({ repo: 'Org/None' }))).toMatchObject({
      code: 'E_UNKNOWN_REF',
      status: 400
    })
  })
  test('the provider fails', async () => {
    const { client } = await start()
    catalog.fail(500)
    expect(await refusal(client.importCatalog({ repo: REPO }))).toMatchObject({
      code: 'E_SOURCE_UNAVAILABLE',
      status: 502
    })
  })
  test('the provider redirects: the redirect is not followed', async () => {
    const { client } = await start({ file: { catalog: { endpoint: `${catalog.endpoint}/from` } } })
    for (const status of [301, 302, 303, 307, 308]) {
      catalog.redirect(status, '/elsewhere')
      expect(await refusal(client.importCatalog({ repo: REPO }))).toMatchObject({
        code: 'E_SOURCE_UNAVAILABLE',
        status: 502
      })
    }
    expect(catalog.requests).toHaveLength(5)
    expect(catalog.requests.filter((path) => path.startsWith('/elsewhere'))).toEqual([])
  })
  test('the provider is gone', async () => {
    const { client } = await start()
    await catalog.close()
    expect(await refusal(client.importCatalog({ repo: REPO }))).toMatchObject({
      code: 'E_SOURCE_UNAVAILABLE',
      status: 502
    })
  })
  test('the hub is gone', async () => {
    const { client } = await start()
    catalog.list([line('a'.repeat(40), GGUF, 'f'.repeat(40))])
    await hub.close()
    expect(await refusal(client.importCatalog({ repo: REPO }))).toMatchObject({
      code: 'E_SOURCE_UNAVAILABLE',
      status: 502
    })
  }, 60_000)
  test('the swarm client is off', async () => {
    const { client } = await start({ file: { swarm: { enabled: false } } })
    expect(await refusal(client.importCatalog({ repo: REPO }))).toMatchObject({
      code: 'E_SOURCE_UNAVAILABLE',
      status: 503
    })
  })
  test('the swarm is unreachable', async () => {
    const commit = hub.commit({ id: REPO, files: [{ path: GGUF, content: weights(10), lfs: true }] })
    const { client } = await start({ timings: { metadataTimeoutMs: 300 } })
    // no file of the anchor has the listed name, so that the hub cannot help either
    catalog.list([line('a'.repeat(40), 'another-name.gguf', commit)])
    expect(await pull(client)).toMatchObject({ state: 'failed', error: { code: 'E_INTERNAL' } })
  })
})

describe('a quota', () => {
  const id = 'Org/Other'
  const listed = (): void => {
    hub.commit({ id, files: [{ path: 'other-q8_0.gguf', content: weights(3 << 20) }] })
    const commit = hub.commit({ id: REPO, files: [{ path: GGUF, content: weights(3 << 20), lfs: true }] })
    catalog.list([line('a'.repeat(40), GGUF, commit, 0)])
  }
  test('refuses a pull without room before any byte, and names eviction candidates', async () => {
    listed()
    const { client } = await start({ file: { store: { max_bytes: 5 << 20 } }, timings: { webAfterMs: 0 } })
    expect(await finished(client, await client.importHf({ repo: id }))).toMatchObject({ state: 'done' })
    const error = { code: 'E_NO_SPACE', candidates: ['org/other:q8_0'] }
    expect(await pull(client)).toMatchObject({ state: 'failed', error })
    expect(hub.bytesSent.get(GGUF)).toBeUndefined()
    expect(await pull(client, { evict: true })).toMatchObject({ state: 'done' })
    expect((await client.models()).namespaces.map(({ members: [member] }) => member!.away)).toEqual([undefined, true])
  })
})
