// @vitest-environment happy-dom
import { expect, test } from 'vitest'
import { TEXTS } from '../src/texts.ts'
import { digest, inventoryOf, job, member, nameOf, openPage, status } from './world.ts'

const inventory = inventoryOf([member('q8_0', { sizeBytes: 2048 }), member('q4_0', { manifest: digest(3) })])
const models = { 'GET v1/models': inventory }
const why = { ref: 'acme/m0:q8_0', manifestDigest: digest(1), record: 'present', doors: [] }
const commands = { commands: [{ runtime: 'llama.cpp', command: 'llama-cli -m $(svc path acme/m0:q8_0)' }] }
const oneModel = { ...models, 'GET v1/why': why, 'GET bridge/commands': commands }
const textOf = (element: Element | null): string => (element?.textContent ?? '').trim()
const rowsIn = (root: Element): string[] => [...root.querySelectorAll('tbody button')].map(nameOf)
const linkOf = (root: Element): string | null | undefined =>
  root.querySelector('[data-link]')?.getAttribute('data-link')

test('the table has a row for each quant, and sorts by a column', async () => {
  const page = await openPage('#models', models)
  expect(rowsIn(page.root)).toEqual(['acme/m0:q4_0', 'acme/m0:q8_0'])
  await page.click('Size')
  expect(rowsIn(page.root)).toEqual(['acme/m0:q8_0', 'acme/m0:q4_0'])
  expect(page.root.querySelector('th[aria-sort="descending"]')).not.toBeNull()
  await page.click('Name')
  expect(rowsIn(page.root)).toEqual(['acme/m0:q4_0', 'acme/m0:q8_0'])
})

test('of 10,000 models only a screenful is rendered, and keys reach the last', async () => {
  const many = inventoryOf(...Array.from({ length: 10_000 }, () => [member('q8_0')]))
  const page = await openPage('#models', { 'GET v1/models': many })
  const table = page.root.querySelector('table')!
  expect(table.getAttribute('aria-rowcount')).toBe('10001')
  expect(page.root.querySelectorAll('tbody button').length).toBeLessThan(60)
  page.root.querySelector<HTMLElement>('tbody button')!.focus()
  await page.press('End')
  expect(nameOf(document.activeElement!)).toBe('acme/m9:q8_0')
  await page.press('ArrowUp')
  expect(document.activeElement!.closest('tr')!.getAttribute('aria-rowindex')).toBe('10000')
  expect(page.root.querySelectorAll('tbody button[tabindex="0"]')).toHaveLength(1)
})

test('the page shows that the daemon went away and came back', async () => {
  const page = await openPage('#models', models)
  expect(linkOf(page.root)).toBe('up')
  await page.send('daemon', { state: 'away' })
  expect(linkOf(page.root)).toBe('away')
  expect(rowsIn(page.root)).toHaveLength(2)
  page.answers = { 'GET v1/models': inventoryOf([member('f16')]) }
  await page.send('daemon', { state: 'up' })
  expect(linkOf(page.root)).toBe('up')
  expect(rowsIn(page.root)).toEqual(['acme/m0:f16'])
})

test('the page says when its link has expired, and when svc ui has ended', async () => {
  const page = await openPage('#models', models)
  page.answers = { 'POST v1/verify': { error: { code: 'E_FORBIDDEN', message: 'no' } } }
  await page.click(TEXTS.models.verifyAll)
  expect(linkOf(page.root)).toBe('expired')
  page.answers = undefined
  await page.click(TEXTS.models.verifyAll)
  expect(linkOf(page.root)).toBe('ended')
})

test('a failure is announced at once, with advice', async () => {
  const page = await openPage('#models', {
    ...models,
    'POST v1/verify': { error: { code: 'E_BAD_REQUEST', message: 'that is nothing', hint: 'try another' } }
  })
  await page.click(TEXTS.models.verifyAll)
  expect(textOf(page.root.querySelector('[role="alert"]'))).toBe('that is nothing. try another')
})

test("a model's details open, and removing it first says what that frees", async () => {
  const page = await openPage('#models', {
    ...oneModel,
    'GET bridge/removal': { ref: 'acme/m0:q8_0', quants: ['acme/m0:q8_0'], freeableBytes: 2048, sharedBytes: 1024 },
    'DELETE v1/models/acme/m0/q8_0': { ref: 'acme/m0:q8_0', quants: [], tags: [], freeableBytes: 2048 },
    'POST v1/gc': job({ kind: 'gc' })
  })
  await page.click('acme/m0:q8_0')
  const dialog = page.root.querySelector('dialog')!
  expect(dialog.open).toBe(true)
  expect(textOf(dialog.querySelector('code'))).toBe('llama-cli -m $(svc path acme/m0:q8_0)')
  await page.click(TEXTS.model.remove)
  const asking = [...page.root.querySelectorAll('dialog')].at(-1)!
  expect(textOf(asking)).toContain('2.0 KiB')
  expect(textOf(asking)).toContain('1.0 KiB')
  expect(page.asked.filter(({ method }) => method === 'DELETE')).toEqual([])
  await page.click(TEXTS.remove.confirm)
  expect(page.asked.slice(-2).map(({ method, path }) => `${method} ${path}`)).toEqual([
    'DELETE v1/models/acme/m0/q8_0',
    'POST v1/gc'
  ])
  expect(page.root.querySelector('dialog')).toBeNull()
})

test('a share shows the command, the link and its QR code', async () => {
  const share = {
    ref: 'acme/m0:q8_0',
    magnet: 'magnet:?xt=urn:btmh:1220',
    announced: true,
    peers: ['192.168.1.7:6881'],
    webseeds: [],
    trackers: [],
    command: 'svc pull magnet:?xt=urn:btmh:1220'
  }
  const page = await openPage('#models', { ...oneModel, 'POST v1/share': share })
  await page.click('acme/m0:q8_0')
  await page.click(TEXTS.model.share)
  const dialog = [...page.root.querySelectorAll('dialog')].at(-1)!
  expect([...dialog.querySelectorAll('code')].map(textOf)).toEqual([share.command, share.magnet])
  expect(dialog.querySelector('svg path')?.getAttribute('d')?.length).toBeGreaterThan(1000)
})

test('a hub search lists results, the user picks a quant, and the import starts', async () => {
  const artifact = { quant: 'q4_0', files: 1, bytes: 4096, bytesPresent: 0 }
  const plan = {
    repo: 'Acme/M1',
    commit: 'c'.repeat(40),
    as: 'acme/m1',
    files: [],
    quants: ['q4_0', 'q8_0'],
    artifacts: [{ ...artifact, quant: 'q8_0', bytes: 8192, bytesPresent: 1024 }, artifact],
    warnings: [],
    fits: [
      { quant: 'q8_0', needBytes: 9000, fit: 'fits' },
      { quant: 'q4_0', needBytes: 5000, fit: 'fits' }
    ],
    source: { repo: 'Acme/M1', revision: 'main' },
    recommended: 'q8_0',
    advice: 'the largest that fits is q8_0'
  }
  const page = await openPage('#get', {
    ...models,
    'POST bridge/source': { kind: 'unknown' },
    'GET v1/search': { entries: [{ repo: 'Acme/M1', gated: false, private: false, formats: ['gguf'] }] },
    'POST bridge/plan': plan,
    'POST v1/import/hf': job()
  })
  await page.type('two words')
  await page.click(TEXTS.get.go)
  await page.click('Acme/M1')
  // what is recommended is chosen beforehand
  expect(page.root.querySelectorAll('input:checked')).toHaveLength(1)
  expect(textOf(page.root.querySelector('footer'))).toContain('7.0 KiB')
  await page.click('q4_0')
  await page.click(TEXTS.get.startSize('11.0 KiB'))
  expect(page.asked.at(-1)).toMatchObject({
    path: 'v1/import/hf',
    body: { repo: 'Acme/M1', revision: plan.commit, follows: 'main', quants: ['q8_0', 'q4_0'] }
  })
})

test('a pasted command imports what its options say', async () => {
  const shared = {
    magnet: 'magnet:?xt=urn:btmh:1220',
    manifestDigest: digest(1),
    companions: { digest: digest(2), infohash: 'btmh:1220' },
    webseeds: ['https://models.example/'],
    as: 'acme/m0',
    private: true
  }
  const page = await openPage('#get', {
    ...models,
    'POST bridge/source': { kind: 'bt', ...shared },
    'POST v1/import/bt': job()
  })
  await page.type('svc import bt …')
  await page.click(TEXTS.get.go)
  expect(page.root.querySelector<HTMLInputElement>('form.card input[type="checkbox"]')!.checked).toBe(true)
  await page.click(TEXTS.get.import)
  expect(page.asked.at(-1)).toMatchObject({ path: 'v1/import/bt', body: { ...shared, manifestFromPeers: true } })
})

test('a count of garbage that fails says why', async () => {
  const count = job({ id: '02', kind: 'gc', ref: 'all', dryRun: true })
  const page = await openPage('#models', { ...models, 'POST v1/gc': count })
  await page.click(TEXTS.models.garbage)
  const said = (): string => textOf(page.root.querySelector('dialog [role="status"]'))
  expect(said()).toBe(TEXTS.garbage.counting)
  const error = { code: 'E_INTERNAL', message: 'the disk cannot be read' } as const
  await page.send('jobs', { jobs: [{ ...count, state: 'failed', error }] })
  expect(said()).toBe('the disk cannot be read')
})

test('before an import from disk, the page says that the model will be shared, unless that is decided', async () => {
  const page = await openPage('#get', { ...models, 'POST bridge/source': { kind: 'local', path: '/models/tiny' } })
  await page.type('/models/tiny')
  await page.click(TEXTS.get.go)
  expect(textOf(page.root)).toContain(TEXTS.get.meaning.shared)
  await page.send('status', { ...status(), seedLocal: true })
  expect(textOf(page.root)).not.toContain(TEXTS.get.meaning.shared)
})

test('a job shows its progress and can be cancelled; a failed one says what to do', async () => {
  const failed = job({ id: '02', state: 'failed', error: { code: 'E_NO_SPACE', message: 'the disk is full' } })
  const page = await openPage('#jobs', { ...models, 'DELETE v1/jobs/01': job() })
  const running = job({ bytesDone: 512, bytesTotal: 2048, rateBytesPerSecond: 512, peers: 2, sources: 1 })
  await page.send('jobs', { jobs: [running, failed], gone: [] })
  const bar = page.root.querySelector('progress')!
  expect([bar.value, bar.max, nameOf(bar)]).toEqual([512, 2048, 'acme/m0'])
  expect([...page.root.querySelectorAll('.figures span')].map(textOf)).toEqual([
    '512 B of 2.0 KiB',
    '512 B/s',
    '3 s left',
    '1 source',
    '2 peers'
  ])
  expect(textOf(page.root)).toContain(TEXTS.jobs.advice.E_NO_SPACE)
  for (let look = 0; look < 10; look++) await page.send('look', {})
  expect(textOf(page.root)).toContain(TEXTS.jobs.stalled)
  await page.click(`${TEXTS.jobs.pause} acme/m0`)
  expect(page.asked.at(-1)).toMatchObject({ method: 'DELETE', path: 'v1/jobs/01' })
  await page.send('jobs', { jobs: [], gone: ['01', '02'] })
  expect(textOf(page.root)).toContain(TEXTS.jobs.none)
})

test('the end of a job is announced on every view; the end of a dry run is not', async () => {
  const page = await openPage('#models', models)
  const count = job({ id: '02', kind: 'gc', ref: 'all', dryRun: true })
  await page.send('jobs', { jobs: [job(), count], gone: [] })
  expect(textOf(page.root.querySelector('.badge'))).toBe('1')
  await page.send('jobs', { jobs: [{ ...count, state: 'done' }], gone: [] })
  expect(textOf(page.root.querySelector('[role="status"]'))).not.toContain('done')
  await page.send('jobs', { jobs: [job({ state: 'done' })], gone: [] })
  expect(textOf(page.root.querySelector('.notices'))).toContain('acme/m0 is done')
  await page.send('jobs', { jobs: [job({ id: '03' })], gone: [] })
  const error = { code: 'E_NO_SPACE', message: 'the disk is full' } as const
  await page.send('jobs', { jobs: [job({ id: '03', state: 'failed', error })], gone: [] })
  expect(textOf(page.root.querySelector('[role="alert"]'))).toContain('the disk is full')
})

test("swarm switches act at once, and health lists the doctor's findings, worst first", async () => {
  const findings = [
    { check: 'node', level: 'ok', text: 'Node is new' },
    { check: 'disk', level: 'bad', text: 'the disk is full', advice: 'free some' }
  ]
  const page = await openPage('#machine', {
    ...models,
    'GET bridge/doctor': { findings },
    'PUT v1/seed': {},
    'PUT v1/upload-limit': {},
    'PUT v1/download-limit': {}
  })
  expect([...page.root.querySelectorAll('.findings li')].map((each) => textOf(each.querySelector('.mark')))).toEqual([
    'Problem: disk',
    'In order: node'
  ])
  const [limit, download] = page.root.querySelectorAll<HTMLInputElement>('input[type="number"]')
  download!.value = '20'
  download!.dispatchEvent(new Event('change', { bubbles: true }))
  await page.settle()
  expect(page.asked.at(-1)).toMatchObject({ path: 'v1/download-limit', body: { bytesPerSecond: 20_971_520 } })
  for (const value of ['2.5', '']) {
    limit!.value = value
    limit!.dispatchEvent(new Event('change', { bubbles: true }))
    await page.settle()
  }
  // an empty field is no answer: 0 would lift the limit
  expect(page.asked.at(-1)).toMatchObject({ path: 'v1/upload-limit', body: { bytesPerSecond: 2_621_440 } })
  await page.click(TEXTS.machine.seed)
  expect(page.asked.at(-1)).toMatchObject({ method: 'PUT', path: 'v1/seed', body: { seed: false } })
})

test('peers are listed one by one while their list is open', async () => {
  const peer = {
    infohash: 'btmh:12',
    manifestDigest: digest(1),
    address: '10.0.0.7:6881',
    client: 'Some/1.0',
    source: 'found',
    have: 0.427,
    downBytesPerSecond: 1_048_576,
    upBytesPerSecond: 0
  }
  const page = await openPage('#machine', {
    ...models,
    'GET bridge/doctor': { findings: [] },
    'GET v1/peers': { peers: [peer], more: 3 }
  })
  await page.send('status', status({ peers: 4 }))
  const asked = (): number => page.asked.filter(({ path }) => path === 'v1/peers').length
  expect(asked()).toBe(0)
  const list = [...page.root.querySelectorAll('details')].find((each) => textOf(each).startsWith('Peers'))!
  list.open = true
  list.dispatchEvent(new Event('toggle'))
  await page.settle()
  await page.settle()
  expect(asked()).toBe(1)
  expect(textOf(list)).toMatch(/10\.0\.0\.7:6881.*Some\/1\.0.*a search.*42%.*1\.0 MiB\/s/)
  expect(textOf(list)).toContain('3 more are connected')
})
