// Back, forward, reload and links lead where they say, and tabs of an earlier run say what to do.
import type { AccessKeeper, KeptAccess } from '@svc/internal-bridge'
import { haveBrowser } from '@svc/testkit/browser'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { describe, expect, it, onTestFinished } from 'vitest'
import { testDaemon } from '../support.ts'
import { button, gguf, importLocal, lookFor, row, sharedBrowser } from './page-world.ts'
import { openBridge } from './support.ts'

async function world() {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  hub.commit({
    id: 'Acme/Tiny-GGUF',
    files: [
      { path: 'tiny-q8_0.gguf', content: gguf(1) },
      { path: 'tiny-q4_0.gguf', content: gguf(2, 'Q4_0') }
    ]
  })
  const daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
  await importLocal(daemon, 'acme/base', 3, 4)
  return { hub, daemon }
}

describe.skipIf(!haveBrowser)('places of the page (chromium is needed)', () => {
  const { openPage } = sharedBrowser()

  it('goes back and forward through models, a search and a plan, and stays after a reload', async () => {
    const { hub, daemon } = await world()
    const { page } = await openPage(daemon)
    await row(page, /^acme\/base:q8_0/).click()
    const dialog = page.getByRole('dialog', { name: 'acme/base:q8_0' })
    await dialog.waitFor()
    await page.reload()
    await dialog.waitFor()
    expect(await page.title()).toContain('acme/base:q8_0')
    await page.goBack()
    await expect.poll(() => dialog.count()).toBe(0)
    await page.goForward()
    await dialog.waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(() => dialog.count()).toBe(0)

    await lookFor(page, 'tiny')
    await button(page, 'Acme/Tiny-GGUF').click()
    const plan = page.getByRole('region', { name: 'Quants of Acme/Tiny-GGUF' })
    await plan.waitFor()
    await page.goBack()
    await button(page, 'Acme/Tiny-GGUF').waitFor()
    // what was found is still known
    const asked = hub.requests.length
    await page.goForward()
    await plan.waitFor()
    expect(hub.requests.length).toBe(asked)
    await page.reload()
    await plan.waitFor()
    await button(page, /Back to the results/).click()
    await button(page, 'Acme/Tiny-GGUF').waitFor()
    expect(await page.getByRole('searchbox').inputValue()).toBe('tiny')
  })

  it('opens links to a model, a search and a plan', async () => {
    const { daemon } = await world()
    const { page } = await openPage(daemon)
    const address = page.url().replace(/#.*/, '')
    const tab = await page.context().newPage()
    const open = async (hash: string): Promise<void> => {
      await tab.goto('about:blank')
      await tab.goto(`${address}${hash}`)
    }
    await open('#models/acme/base:q4_0')
    await tab.getByRole('dialog', { name: 'acme/base:q4_0' }).waitFor()
    await tab.keyboard.press('Escape')
    await expect.poll(() => tab.url()).toMatch(/#models$/)
    await open('#get?text=tiny')
    await button(tab, 'Acme/Tiny-GGUF').waitFor()
    await open('#get?repo=Acme/Tiny-GGUF')
    await tab.getByRole('checkbox', { name: /^q8_0/ }).waitFor()
    await open('#models/acme/gone:q8_0')
    await tab.getByRole('dialog', { name: 'There is no acme/gone:q8_0 here' }).waitFor()
    await tab.getByRole('link', { name: 'Look for it on the hub' }).click()
    await expect.poll(() => tab.url()).toMatch(/#get\?text=acme%2Fgone$/)
  })

  it('says what to do in a tab whose svc ui has ended, and in one of an earlier run', async () => {
    const { daemon } = await world()
    let kept: KeptAccess | undefined
    const keeping = (access: KeptAccess | undefined): AccessKeeper => ({
      kept: access,
      keep: (now) => {
        kept = now
      },
      redeem: () => false
    })
    const { page, bridge } = await openPage(daemon, {}, { keeper: keeping(undefined) })
    await bridge.close()
    const banner = page.locator('[data-link="ended"]')
    await banner.waitFor()
    expect(await banner.textContent()).toContain('Run svc ui again')
    // the same address, another run
    const { name, port } = kept!
    await openBridge(daemon.socketPath, { port, keeper: keeping({ name, port, path: '/another-run/', sessions: [] }) })
    await page.locator('[data-link="expired"]').waitFor()
    await page.reload()
    await page.getByText('Run “svc ui” again').waitFor()
  })
})
