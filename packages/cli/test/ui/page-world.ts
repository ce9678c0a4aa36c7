// The page in a real browser, on a bridge and a daemon of the test. Needs `dist` of the page, so `pnpm build` comes first.
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Browser, type BrowserContext, type Page, startBrowser } from '@svc/testkit/browser'
import { makeGguf, tinyTensors } from '@svc/testkit/models'
import { DIRECTORY, FILES } from '@svc/ui'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { laterUndo, type TestDaemon } from '../support.ts'
import { openBridge } from './support.ts'

const files = new Map(
  Object.entries(FILES).map(([name, type]) => [name, { type, bytes: readFileSync(new URL(name, DIRECTORY)) }])
)
export const gguf = (seed: number, type: 'Q8_0' | 'Q4_0' = 'Q8_0'): Buffer =>
  makeGguf({ seed, tensors: tinyTensors(type) })

/** A browser for the tests of a file. */
export function sharedBrowser() {
  const undo = laterUndo()
  let browser: Browser
  beforeAll(async () => {
    browser = await startBrowser()
    undo.later(() => browser.close())
  })
  afterAll(undo.all)

  /** A tab with the page, in a session of its own. Faults of its scripts fail the test. */
  async function openPage(
    daemon: Pick<TestDaemon, 'socketPath'>,
    options: Parameters<Browser['newContext']>[0] = {},
    more: Parameters<typeof openBridge>[1] = {}
  ) {
    const { bridge } = await openBridge(daemon.socketPath, { files, ...more })
    const context: BrowserContext = await browser.newContext(options)
    onTestFinished(() => context.close())
    const page = await context.newPage()
    const faults: string[] = []
    page.on('pageerror', (error) => faults.push(error.message))
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
    onTestFinished(() => expect(faults.filter((fault) => !/Failed to load resource/.test(fault))).toEqual([]))
    await page.goto(bridge.newLink())
    await page.locator('[data-link="up"]').waitFor({ state: 'attached' })
    return { page, bridge }
  }
  return { openPage }
}

export const show = (page: Page, view: 'models' | 'get' | 'jobs' | 'machine'): Promise<void> =>
  page.locator(`nav a[href="#${view}"]`).click()
export const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true })
/** In the table, not in the picture. */
export const row = (page: Page, name: RegExp) => page.getByRole('table').getByRole('button', { name })
/** What the page tells of what just happened. */
export const notice = (page: Page) => page.locator('.notices').last()

/** Imports models of a file each. */
export async function importLocal(daemon: TestDaemon, as: string, ...seeds: readonly number[]): Promise<void> {
  const folder = join(daemon.folder, as.replace('/', '-'))
  await mkdir(folder)
  for (const [i, seed] of seeds.entries())
    await writeFile(join(folder, `model-${i === 0 ? 'q8_0' : 'q4_0'}.gguf`), gguf(seed, i === 0 ? 'Q8_0' : 'Q4_0'))
  expect(await daemon.svc('import', folder, '--as', as, '--all')).toMatchObject({ code: 0 })
}

/** Types into the field of the view Get, and looks. */
export async function lookFor(page: Page, text: string): Promise<void> {
  await show(page, 'get')
  await page.getByRole('searchbox').fill(text)
  await button(page, 'Look').click()
}

/** Turns a bit of the largest blob of a store. */
export function damageLargest({ root }: TestDaemon): void {
  const blobs = readdirSync(join(root, 'blobs'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path, bytes: readFileSync(path) }))
  const { path, bytes } = blobs.reduce((most, each) => (each.bytes.length > most.bytes.length ? each : most))
  bytes[bytes.length - 1]! ^= 1
  chmodSync(path, 0o600)
  writeFileSync(path, bytes)
}
