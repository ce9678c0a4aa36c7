// The page in a real browser, on the bridge, the daemon and a hub on loopback. Needs `dist`, so `pnpm build` comes first.

import { haveBrowser, type Page } from '@svc/testkit/browser'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import axe from 'axe-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { laterUndo, QUIET_SWARM, type TestDaemon, testDaemon } from '../support.ts'
import { button, gguf, importLocal, row, sharedBrowser, show } from './page-world.ts'

const VIEWS = ['models', 'get', 'jobs', 'machine'] as const
const REPO = 'Acme/Tiny-GGUF'
describe.skipIf(!haveBrowser)('the page (chromium is needed)', () => {
  const { openPage: opened } = sharedBrowser()
  const undo = laterUndo()
  let hub: FakeHub
  let daemon: TestDaemon
  beforeAll(async () => {
    hub = await startFakeHub()
    undo.later(() => hub.close())
    hub.commit({
      id: REPO,
      files: [
        { path: 'tiny-q8_0.gguf', content: gguf(1) },
        { path: 'tiny-q4_0.gguf', content: gguf(2, 'Q4_0') },
        { path: 'README.md', content: Buffer.from('# tiny') }
      ]
    })
    const fileConfig = { hub: { endpoint: hub.endpoint }, swarm: QUIET_SWARM }
    daemon = await testDaemon({ fileConfig }, undo.later)
    await importLocal(daemon, 'acme/base', 3, 4)
  })
  afterAll(undo.all)

  const openPage = async (options?: Parameters<typeof opened>[1]): Promise<Page> => (await opened(daemon, options)).page
  /** Shows the picture of the disk, which narrow windows hide at first. */
  async function showMap(page: Page): Promise<void> {
    const toggle = button(page, 'Disk use')
    if ((await toggle.getAttribute('aria-pressed')) === 'false') await toggle.click()
    await page.locator('.map button').first().waitFor()
  }
  it('chooses, imports, looks, shares and removes by mouse', async () => {
    const page = await openPage()
    await show(page, 'get')
    await page.getByRole('searchbox').fill('tiny')
    await button(page, 'Look').click()
    await button(page, REPO).click()
    await page.getByRole('checkbox', { name: 'q4_0' }).setChecked(true)
    await page.getByRole('checkbox', { name: 'q8_0' }).setChecked(false)
    await button(page, /^Get the selected quants/).click()
    await show(page, 'jobs')
    await page.locator('li[data-job="done"]', { hasText: 'acme/tiny-gguf' }).waitFor()
    await show(page, 'models')
    await row(page, /^acme\/tiny-gguf/).click()
    const dialog = page.getByRole('dialog').last()
    await expect.poll(() => dialog.locator('code').first().textContent()).toContain('acme/tiny-gguf:q4_0')
    await button(page, 'Share…').click()
    await page.getByText('Only this machine can reach it.').waitFor()
    await expect.poll(() => dialog.locator('code').first().textContent()).toContain('svc ')
    await dialog.getByRole('button', { name: 'Close' }).click()
    await button(page, 'Remove…').click()
    await dialog.getByText('This frees').waitFor()
    await button(page, 'Remove').click()
    await expect.poll(() => row(page, /^acme\/tiny-gguf/).count()).toBe(0)
    expect((await daemon.svc('ls', '-q')).stdout).not.toContain('tiny')
  })

  it('does the same with only the keyboard', async () => {
    const page = await openPage()
    const keys = page.keyboard
    /** Presses Tab until the focus is on the element with this name. */
    async function tabTo(name: string | RegExp): Promise<void> {
      const seen: string[] = []
      for (let steps = 0; steps < 80; steps++) {
        const focused = await page.evaluate<string>(
          `(document.activeElement.getAttribute('aria-label') ?? document.activeElement.closest('label')?.textContent ?? document.activeElement.querySelector(':scope > .name > .unseen')?.textContent ?? document.activeElement.textContent ?? '').trim()`
        )
        if (typeof name === 'string' ? focused === name : name.test(focused)) return
        seen.push(focused)
        await keys.press('Tab')
      }
      throw new Error(`${name} has no place in the order of tabs: ${seen.join(' · ')}`)
    }
    const press = async (name: string | RegExp, key = 'Enter'): Promise<void> => {
      await tabTo(name)
      await keys.press(key)
    }
    await press('Get')
    await tabTo(/^Search, or paste/)
    await keys.type(REPO)
    await keys.press('Enter')
    await page.getByRole('checkbox', { name: 'q8_0' }).waitFor()
    for (const quant of ['q4_0', 'q8_0'])
      if ((await page.getByRole('checkbox', { name: quant }).isChecked()) !== (quant === 'q8_0'))
        await press(quant, 'Space')
    await press(/^Get the selected quants/)
    await expect.poll(async () => (await daemon.svc('ls', '-q')).stdout).toContain('acme/tiny-gguf:q8_0')
    await press('Models')
    await row(page, /^acme\/tiny-gguf/).waitFor()
    await tabTo(/^acme\/base:\w+$/)
    await keys.press('End')
    await keys.press('Enter')
    await press('Share…')
    await page.getByText('Only this machine can reach it.').waitFor()
    await keys.press('Escape')
    await expect.poll(() => page.getByRole('dialog').count()).toBe(1)
    await press('Remove…')
    await page.getByText('This frees').waitFor()
    await press('Remove')
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
    expect((await daemon.svc('ls', '-q')).stdout).not.toContain('tiny')
  })

  it('keeps the focus in a dialog, closes it with Escape, and returns the focus', async () => {
    const page = await openPage()
    const opener = row(page, /^acme\/base/).first()
    await opener.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    for (let steps = 0; steps < 40; steps++) {
      await page.keyboard.press('Tab')
      expect(
        await page.evaluate(
          `document.activeElement === document.body || document.activeElement.closest('dialog') !== null`
        )
      ).toBe(true)
    }
    await page.keyboard.press('Escape')
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
    await expect.poll(() => opener.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true)
  })

  it.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 1920],
    ['light', 360],
    ['dark', 360]
  ] as const)('%s and %i pixels wide, each view fits and is accessible', async (colorScheme, width) => {
    // without motion: a sheet that fades in has, for 160 ms, less contrast than it will have.
    const viewport = { width, height: 740 }
    const page = await openPage({ colorScheme, viewport, bypassCSP: true, reducedMotion: 'reduce' })
    const judge = async (what: string): Promise<void> => {
      await page.evaluate(axe.source)
      const faults = await page.evaluate<string[]>(
        `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.html).join(' ')))`
      )
      expect([what, ...faults]).toEqual([what])
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    }
    for (const view of VIEWS) {
      await show(page, view)
      await judge(view)
    }
    await show(page, 'get')
    await page.getByRole('searchbox').fill(REPO)
    await button(page, 'Look').click()
    await page.getByRole('checkbox').first().waitFor()
    await judge('plan')
    await show(page, 'models')
    await showMap(page)
    await judge('map')
    await row(page, /^acme\/ ?base/)
      .first()
      .click()
    await page.locator('.doors li').first().waitFor()
    await judge('model')
    await button(page, 'Share…').click()
    await page.getByText('Only this machine can reach it.').waitFor()
    await judge('share')
    const back = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
    expect(back).toBe(colorScheme === 'dark' ? 'rgb(15, 21, 20)' : 'rgb(244, 246, 245)')
  })

  it('shows that the daemon is away, and continues when it is back', async () => {
    const page = await openPage()
    await daemon.pause()
    await page.locator('[data-link="away"]').waitFor()
    expect(await row(page, /^acme\/base/).count()).toBeGreaterThan(0)
    await daemon.resume()
    await page.locator('[data-link="up"]').waitFor({ state: 'attached' })
  })

  it('renders every screen of 10,000 models while scrolling', async () => {
    const page = await openPage()
    const member = { quant: 'q8_0', sizeBytes: 1, complete: true, private: false }
    const namespaces = Array.from({ length: 10_000 }, (_, i) => ({
      ns: 'many',
      name: `m${String(i).padStart(5, '0')}`,
      quants: ['q8_0'],
      members: [{ ...member, manifest: `sha256:${i.toString(16).padStart(64, '0')}` }]
    }))
    await page.route('**/v1/models', (route) => route.fulfill({ json: { namespaces, tags: [] } }))
    await page.reload()
    await page.locator('[data-rows="10000"]').waitFor()
    // each step is a frame; what the frame shows in the middle of the table must be the row of that place
    const { blank, rows, frames } = await page.evaluate<{ blank: number; rows: number; frames: number }>(`(async () => {
      const box = document.querySelector('.table')
      const { top, left, height } = box.getBoundingClientRect()
      const rowHeight = box.querySelector('[data-row]').getBoundingClientRect().height
      const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))
      let [blank, rows, frames] = [0, 0, 0]
      for (let at = 0; at < box.scrollHeight; at += 1700) {
        box.scrollTop = at
        await frame()
        frames++
        const row = document.elementFromPoint(left + 40, top + height / 2)?.closest('tr')
        const expected = Math.floor((box.scrollTop + height / 2) / rowHeight) + 1
        if (row === null || row === undefined || Math.abs(Number(row.ariaRowIndex ?? row.getAttribute('aria-rowindex')) - expected) > 1) blank++
        rows = Math.max(rows, box.querySelectorAll('tr').length)
      }
      return { blank, rows, frames }
    })()`)
    expect({ blank, isBounded: rows < 100, isWhole: frames > 190 }).toEqual({
      blank: 0,
      isBounded: true,
      isWhole: true
    })
  })
})
