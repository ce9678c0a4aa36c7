// What the page says is so: jobs, rates, health, counts, and who can reach what is shared.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { haveBrowser, type Page } from '@svc/testkit/browser'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ok, QUIET_SWARM, testDaemon } from '../support.ts'
import { button, damageLargest, gguf, importLocal, lookFor, notice, row, sharedBrowser, show } from './page-world.ts'

const REPO = 'Acme/Large-GGUF'
const MIB = 1024 * 1024

/** Weights of so many MiB. */
function large(mebibytes: number): Buffer {
  const head = gguf(1)
  return Buffer.concat([head, Buffer.alloc(mebibytes * MIB - head.length, 7)])
}

/** A daemon, and a hub whose one model of 8 MiB comes slowly until `release`. */
async function slowHub() {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  hub.commit({ id: REPO, files: [{ path: 'large-q8_0.gguf', content: large(8) }] })
  const fault = { kind: 'drip', stepBytes: 16 * 1024, everyMs: 50 } as const
  hub.setFaults(scriptedFaults([{ stage: 'cdn', fault }]))
  const daemon = await testDaemon({ fileConfig: { hub: { endpoint: hub.endpoint }, swarm: { enabled: false } } })
  return { hub, daemon, release: () => hub.setFaults(undefined) }
}

/** Gets the one quant of the hub's model. */
async function startImport(page: Page): Promise<void> {
  await lookFor(page, REPO)
  await button(page, /^Get the selected quants/).click()
  await show(page, 'jobs')
  await page.locator('[data-job="fetching"]').waitFor()
}

describe.skipIf(!haveBrowser)('the page tells the truth (chromium is needed)', () => {
  const { openPage } = sharedBrowser()

  it('tells of every job that begins and fails between two looks', async () => {
    const daemon = await testDaemon()
    const { page } = await openPage(daemon)
    for (const name of ['one', 'two', 'three']) {
      const path = join(daemon.folder, `${name}-q8_0.gguf`)
      await writeFile(path, 'hello')
      await lookFor(page, path)
      await button(page, 'Import').click()
      const said = notice(page).getByRole('alert')
      await expect.poll(() => said.textContent(), { timeout: 10_000 }).toMatch(`${name}-q8_0.gguf failed.`)
      await notice(page).getByRole('button').click()
    }
  })

  it('has no ghosts after a restart, and continues a download from where it was', async () => {
    const { hub, daemon, release } = await slowHub()
    const { page } = await openPage(daemon)
    const path = join(daemon.folder, 'no-q8_0.gguf')
    await writeFile(path, 'hello')
    await daemon.svc('import', path, '--as', 'acme/no')
    await startImport(page)
    await page.locator('[data-job="failed"]', { hasText: 'acme/no' }).waitFor()
    await expect.poll(() => hub.bytesSent.get('large-q8_0.gguf') ?? 0, { timeout: 20_000 }).toBeGreaterThan(2 * MIB)
    await daemon.pause()
    await page.locator('[data-link="away"]').waitFor()
    const before = hub.bytesSent.get('large-q8_0.gguf')!
    release()
    await daemon.resume()
    await page.locator('[data-link="up"]').waitFor({ state: 'attached' })
    await expect.poll(() => page.locator('[data-job]').count()).toBe(1)
    await page.locator('[data-job]', { hasText: 'interrupted' }).waitFor()
    await button(page, 'Continue: acme/large-gguf').click()
    await page.locator('[data-job="done"]', { hasText: 'acme/large-gguf' }).waitFor()
    // what was on its way when the daemon ended is asked for again
    expect(hub.bytesSent.get('large-q8_0.gguf')! - before).toBeLessThan(8 * MIB)
  })

  it('never calls a healthy download of the swarm stalled', async () => {
    const quiet = { hub: { endpoint: 'http://127.0.0.1:9' } }
    const giver = await testDaemon({ fileConfig: { ...quiet, swarm: { ...QUIET_SWARM, upload_limit: 500 * 1024 } } })
    const taker = await testDaemon({ fileConfig: { ...quiet, swarm: QUIET_SWARM } })
    await mkdir(join(giver.folder, 'large'))
    await writeFile(join(giver.folder, 'large/large-q8_0.gguf'), large(32))
    await ok(giver, 'import', 'local', 'large', '--as', 'acme/large')
    const { command } = JSON.parse(await ok(giver, 'share', 'acme/large', '--json'))
    const { page } = await openPage(taker)
    await lookFor(page, command)
    await button(page, 'Import').click()
    await show(page, 'jobs')
    const running = page.locator('[data-job="fetching"]')
    await running.waitFor()
    await page.evaluate(`(() => {
      window.stalled = []
      new MutationObserver(() => {
        const text = document.querySelector('[data-job] .mark.warn')?.textContent ?? ''
        if (text.includes('Stalled')) window.stalled.push(text)
      }).observe(document.querySelector('main'), { subtree: true, childList: true, characterData: true, attributes: true })
    })()`)
    // one piece has 16 MiB, and a look comes every two seconds
    const looks = (): Promise<number> =>
      page.evaluate<number>(
        `(document.querySelector('.course .line .first path:not(.area)')?.getAttribute('d') ?? '').split(' ').length / 2`
      )
    await expect.poll(looks, { timeout: 90_000, interval: 1000 }).toBeGreaterThan(12)
    expect(await page.evaluate('window.stalled')).toEqual([])
    expect(await running.locator('.figures').textContent()).toMatch(/ KiB\/s|MiB\/s/)
    await button(page, /^Pause/).click()
  })

  it('counts what comes from the hub among the rates of the machine', async () => {
    const { daemon, release } = await slowHub()
    const { page } = await openPage(daemon)
    await startImport(page)
    const rates = page.locator('.glance .rates')
    await expect.poll(() => rates.textContent(), { timeout: 20_000 }).toMatch(/↓ \d+(\.\d)? [KM]iB\/s/)
    await show(page, 'machine')
    await expect.poll(() => page.getByText(/Down \d+(\.\d)? [KM]iB\/s/).count()).toBe(1)
    release()
  })

  it('does not say that all is in order of a store with a damaged model, and names the model', async () => {
    const daemon = await testDaemon()
    await importLocal(daemon, 'acme/hurt', 5)
    const { page } = await openPage(daemon)
    await show(page, 'machine')
    const health = page.getByRole('region', { name: 'Health' })
    await health.getByText('all 1 are whole').waitFor()
    damageLargest(daemon)
    expect((await daemon.svc('verify', 'all')).code).not.toBe(0)
    await expect.poll(() => health.textContent(), { timeout: 10_000 }).toMatch('acme/hurt:q8_0')
    expect(await health.getByRole('status').textContent()).toMatch('found a problem')
  })

  it('says who can reach what is shared, and shows no command that cannot work', async () => {
    const daemon = await testDaemon({ fileConfig: { hub: { endpoint: 'http://127.0.0.1:9' }, swarm: QUIET_SWARM } })
    await importLocal(daemon, 'acme/base', 3, 4)
    await ok(daemon, 'private', 'acme/base:q4_0')
    const { page } = await openPage(daemon)
    const share = async (quant: string) => {
      await row(page, new RegExp(`^acme/base:${quant}`)).click()
      await button(page, 'Share…').click()
      return page.getByRole('dialog').last()
    }
    const kept = await share('q4_0')
    await kept.getByText('Nobody can fetch it now.').waitFor()
    expect(await kept.locator('code').count()).toBe(0)
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    const given = await share('q8_0')
    await given.getByText('Only this machine can reach it.').waitFor()
    expect(await given.textContent()).toContain('another store on this machine')
    expect(await given.locator('.qr').count()).toBe(0)
  })

  it('counts models and quants apart', async () => {
    const daemon = await testDaemon()
    await importLocal(daemon, 'acme/base', 3, 4)
    await importLocal(daemon, 'acme/other', 5)
    const { page } = await openPage(daemon)
    await page.getByText('3 quants of 2 models').waitFor()
    await page.getByRole('searchbox').fill('other')
    await page.getByText('1 of 3 quants of 1 model,').waitFor()
  })
})
