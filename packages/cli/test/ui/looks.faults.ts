// How the page looks: no half-blank screens, nothing cut or overlapping, large enough for fingers. Also paints the four pictures.
// With SVC_PICTURES=1 the pictures replace those of the documentation; otherwise they are only made, and must show what they should.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { haveBrowser, type Page } from '@svc/testkit/browser'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { laterUndo, ok, QUIET_SWARM, type TestDaemon, testDaemon } from '../support.ts'
import { putHub } from '../tool-caches.ts'
import { button, gguf, lookFor, row, sharedBrowser, show } from './page-world.ts'

/** Mebibytes by model and quant. */
const MODELS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  'google/gemma-3-270m-it': { q4_k_m: 241, q8_0: 278 },
  'huggingfacetb/smollm2-135m-instruct': { q4_k_m: 101, q8_0: 138, f16: 259 },
  'nomic-ai/nomic-embed-text-v1.5': { q8_0: 139, f16: 262 },
  'qwen/qwen3-embedding-0.6b': { q4_k_m: 378 },
  'baai/bge-small-en-v1.5': { q8_0: 35, f16: 64 },
  'sentence-transformers-of-a-long-name/all-minilm-l6-v2': { f16: 44 }
}
const LONG = 'sentence-transformers-of-a-long-name/all-minilm-l6-v2'
const MIB = 1024 * 1024
const PICTURES = fileURLToPath(new URL('../../../../docs/guide/', import.meta.url))

describe.skipIf(!haveBrowser)('how the page looks (chromium is needed)', () => {
  const { openPage } = sharedBrowser()
  const undo = laterUndo()
  let hub: FakeHub
  let daemon: TestDaemon
  let home: string
  let version: string
  beforeAll(async () => {
    hub = await startFakeHub()
    undo.later(() => hub.close())
    const head = gguf(90)
    for (const [id, mebibytes] of [
      ['Qwen/Qwen3-0.6B-GGUF', 40],
      ['ggml-org/Qwen3-1.7B-GGUF', 24]
    ] as const)
      hub.commit({
        id,
        files: ['Q8_0', 'Q4_K_M'].map((quant, i) => ({
          path: `${id.split('/')[1]!.replace('-GGUF', '')}-${quant}.gguf`,
          content: Buffer.concat([head, Buffer.alloc(mebibytes * MIB * (i === 0 ? 1 : 0.6) - head.length, i)])
        }))
      })
    const fileConfig = { hub: { endpoint: hub.endpoint }, swarm: QUIET_SWARM }
    // on a disk, and with a name that a picture may show
    const folder = mkdtempSync(join(tmpdir(), 'svc-'))
    undo.later(() => rmSync(folder, { recursive: true, force: true }))
    daemon = await testDaemon({ fileConfig, folder }, undo.later)
    version = /svcd ([^,\s]+)/.exec((await daemon.svc('status')).stdout)?.[1] ?? ''
    for (const [name, sizes] of Object.entries(MODELS)) {
      const folder = join(daemon.folder, name.replace('/', '-'))
      await mkdir(folder)
      for (const [quant, mebibytes] of Object.entries(sizes)) {
        const file = join(folder, `model-${quant}.gguf`)
        await writeFile(file, gguf(mebibytes))
        await truncate(file, mebibytes * MIB)
      }
      await ok(daemon, 'import', folder, '--as', name, '--all')
    }
    for (const [name, sizes] of Object.entries(MODELS).slice(1, 4))
      for (const quant of Object.keys(sizes)) await ok(daemon, 'share', `${name}:${quant}`)
    await ok(daemon, 'private', 'baai/bge-small-en-v1.5')
    await ok(daemon, 'pin', 'nomic-ai/nomic-embed-text-v1.5:f16')
    home = join(daemon.folder, 'home')
    mkdirSync(join(home, '.local/state/svc'), { recursive: true })
    putHub(join(home, '.cache/huggingface/hub'), 'Acme/Other-GGUF', { 'other-q8_0.gguf': gguf(4) })
    writeFileSync(join(home, '.local/state/svc/svcd.log'), LOG)
  }, 300_000)
  afterAll(undo.all)

  const open = async (options: Parameters<typeof openPage>[1]): Promise<Page> =>
    (await openPage(daemon, { reducedMotion: 'reduce', ...options }, { env: { HOME: home }, version })).page

  it.each([1920, 1280])('leaves no column of Machine empty at %i pixels', async (width) => {
    const page = await open({ viewport: { width, height: 1080 } })
    await show(page, 'machine')
    await page.getByText('all 11 are whole').waitFor()
    const used = await page.evaluate<number>(`(() => {
      const box = document.querySelector('.cards').getBoundingClientRect()
      const cards = [...document.querySelectorAll('.cards .card')].map((each) => each.getBoundingClientRect())
      return cards.reduce((sum, { width, height }) => sum + width * height, 0) / (box.width * box.height)
    })()`)
    expect(used).toBeGreaterThan(0.7)
    const right = await page.evaluate<number>(
      `Math.max(...[...document.querySelectorAll('.card')].map((each) => each.getBoundingClientRect().right))`
    )
    expect(right).toBeGreaterThan(width - 40)
  })

  it('has a label on each tile of the map that is not tiny, and no tile on another', async () => {
    for (const width of [1920, 1100, 390]) {
      const page = await open({ viewport: { width, height: 900 } })
      if (width < 700) await button(page, 'Disk use').click()
      await page.locator('.map button').first().waitFor()
      const found = await page.evaluate<{ overlaps: string[]; bare: string[] }>(`(() => {
        const tiles = [...document.querySelectorAll('.map button')].map((each) => [each, each.getBoundingClientRect()])
        const overlaps = tiles.flatMap(([a, x], i) => tiles.slice(i + 1)
          .filter(([, y]) => Math.min(x.right, y.right) - Math.max(x.left, y.left) > 0.5 &&
            Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top) > 0.5)
          .map(([b]) => a.title + ' on ' + b.title))
        const bare = tiles.filter(([each, box]) => box.width > 40 && box.height > 20 && each.innerText.trim() === '')
        return { overlaps, bare: bare.map(([each]) => each.title) }
      })()`)
      expect({ width, ...found }).toEqual({ width, overlaps: [], bare: [] })
    }
  })

  it.each([1280, 800, 390])('shows the name of a model whose owner has a long one, at %i pixels', async (width) => {
    const page = await open({ viewport: { width, height: 900 } })
    const name = row(page, new RegExp(`^${LONG}`)).locator('.repo')
    await name.scrollIntoViewIfNeeded()
    expect(await name.evaluate((element) => element.scrollWidth <= element.clientWidth + 1)).toBe(true)
    expect((await name.boundingBox())!.width).toBeGreaterThan(80)
  })

  it('has nothing smaller than 44 pixels to touch', async () => {
    const page = await open({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true })
    const small = (): Promise<string[]> =>
      page.evaluate<string[]>(`[...document.querySelectorAll('button, a.button, nav a, select, input, summary')]
        .filter((each) => each.closest('.map, [hidden]') === null && each.getClientRects().length > 0)
        .map((each) => [each, (each.matches('input[type=checkbox]') ? each.closest('label') : each).getBoundingClientRect()])
        .filter(([, { width, height }]) => height < 43.5 || width < 40)
        .map(([each, { width, height }]) => (each.ariaLabel ?? each.innerText) + ' ' + width + '×' + height)`)
    for (const view of ['models', 'get', 'jobs', 'machine'] as const) {
      await show(page, view)
      if (view === 'machine') await page.getByText('all 11 are whole').waitFor()
      expect({ view, small: await small() }).toEqual({ view, small: [] })
    }
    await lookFor(page, 'Qwen/Qwen3-0.6B-GGUF')
    await page.getByRole('checkbox').first().waitFor()
    expect({ view: 'plan', small: await small() }).toEqual({ view: 'plan', small: [] })
    const whole = await page.evaluate<boolean>(
      `document.querySelector('.quants').getBoundingClientRect().right <= document.querySelector('.card').getBoundingClientRect().right`
    )
    expect(whole).toBe(true)
  })

  it('draws the chart of a download from its first look on', async () => {
    hub.setFaults(scriptedFaults([{ stage: 'cdn', fault: DRIP }]))
    const page = await open({ viewport: { width: 1280, height: 800 } })
    await lookFor(page, 'ggml-org/Qwen3-1.7B-GGUF')
    await button(page, /^Get the selected quants/).click()
    await show(page, 'jobs')
    const chart = page.locator('.course .line')
    await chart.locator('.first').waitFor()
    // from the left, beside the bar
    expect(await chart.locator('.first path:not(.area)').getAttribute('d')).toMatch(/^M0\.0 /)
    const [bar, line] = [await page.locator('.course progress').boundingBox(), await chart.boundingBox()]
    expect(line!.x).toBeGreaterThan(bar!.x + bar!.width)
    await button(page, /^Pause/).click()
    await page.locator('[data-job]', { hasText: 'paused' }).waitFor()
    hub.setFaults(undefined)
  })

  it('paints the four pictures, light and dark', async () => {
    hub.setFaults(scriptedFaults([{ stage: 'cdn', fault: { ...DRIP, stepBytes: 8 * 1024 } }]))
    const page = await open({ viewport: { width: 1180, height: 720 }, deviceScaleFactor: 1.5 })
    // Node is elsewhere for everybody
    await page.route('**/bridge/doctor', async (route) => {
      const answer = await route.fetch()
      const body = (await answer.text()).replaceAll(process.execPath, '/usr/bin/node')
      await route.fulfill({ response: answer, body })
    })
    const paint = async (name: string): Promise<void> => {
      await page.evaluate('document.fonts.ready')
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        const path = join(PICTURES, `ui-${name}-${colorScheme}.png`)
        const bytes = await page.screenshot(process.env.SVC_PICTURES === '1' ? { path } : {})
        expect(bytes.length).toBeGreaterThan(30_000)
        expect(existsSync(path)).toBe(true)
      }
    }
    await page.locator('.map button').first().waitFor()
    await paint('models')
    await lookFor(page, 'Qwen/Qwen3-0.6B-GGUF')
    await page.getByRole('row', { name: /recommended/ }).waitFor()
    await paint('get')
    await button(page, /^Get the selected quants/).click()
    await show(page, 'jobs')
    const line = page.locator('.course .line .first path').last()
    await expect.poll(() => line.getAttribute('d'), { timeout: 40_000 }).toMatch(/(?:[\d.]+ ){6}/)
    await paint('jobs')
    await show(page, 'machine')
    await page.getByText(/^every record/).waitFor()
    await paint('machine')
    hub.setFaults(undefined)
  })
})

const DRIP = { kind: 'drip', stepBytes: 64 * 1024, everyMs: 40 } as const
const LOG = [
  'info: svcd 0.1.0 listens at /run/user/1000/svc/svc.sock',
  'info: 11 models are verified',
  'info: peers connect to 127.0.0.1:51413'
].join('\n')
