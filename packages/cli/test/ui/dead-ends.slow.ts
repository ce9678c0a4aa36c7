// Whatever fails on the page has its next step there.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { mergeConfig } from '@svc/daemon'
import { haveBrowser } from '@svc/testkit/browser'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ok, QUIET_SWARM, testDaemon } from '../support.ts'
import { button, damageLargest, gguf, importLocal, lookFor, row, sharedBrowser, show } from './page-world.ts'

/** A hub with one open repository, which knows one token. */
async function openHub() {
  const hub = await startFakeHub({ tokens: ['good'] })
  onTestFinished(() => hub.close())
  hub.commit({ id: 'Acme/Open-GGUF', files: [{ path: 'open-q8_0.gguf', content: gguf(1) }] })
  return hub
}

describe.skipIf(!haveBrowser)('the page has no dead end (chromium is needed)', () => {
  const { openPage } = sharedBrowser()

  it('logs in where the hub asks for it, with a link to the terms, and goes on', async () => {
    const hub = await openHub()
    const folder = (await testDaemon()).folder
    const env = { HOME: folder }
    const config = mergeConfig(
      { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } },
      { root: join(folder, 'store') },
      env
    )
    const daemon = await testDaemon({ config })
    const { page } = await openPage(daemon, {}, { env })
    await lookFor(page, 'Acme/Open-GGUF')
    const get = button(page, /^Get the selected quants/)
    await get.waitFor()
    // the terms changed after the list of its quants was read
    hub.setAccess('Acme/Open-GGUF', { gated: 'manual' })
    await get.click()
    const failed = page.getByRole('region', { name: 'What went wrong' })
    await failed.waitFor()
    expect(await failed.getByRole('link', { name: 'Open its page and terms' }).getAttribute('href')).toContain(
      `${hub.endpoint}/Acme/Open-GGUF`
    )
    const field = failed.getByLabel(/^Access token/)
    await field.fill('wrong')
    await button(page, 'Log in and try again').click()
    await page.getByRole('alert').getByText(/token/).first().waitFor()
    await field.fill('good')
    await button(page, 'Log in and try again').click()
    await show(page, 'jobs')
    await page.locator('[data-job="done"]', { hasText: 'acme/open-gguf' }).waitFor()
    expect(await readFile(join(folder, '.cache/huggingface/token'), 'utf8')).toBe('good')
  })

  it('answers a refusal of the hub with what to do', async () => {
    const hub = await openHub()
    const daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
    const { page } = await openPage(daemon)
    await lookFor(page, 'Acme/Opne-GGUF')
    await page.getByRole('link', { name: 'Search for it' }).click()
    await expect.poll(() => page.url()).toMatch(/text=Opne-GGUF$/)
    hub.setFaults(() => ({ kind: 'status', status: 503 }))
    await lookFor(page, 'Acme/Open-GGUF')
    const again = button(page, 'Try again')
    await again.waitFor({ timeout: 60_000 })
    hub.setFaults(undefined)
    await again.click()
    await page.getByRole('region', { name: 'Quants of Acme/Open-GGUF' }).waitFor()
  })

  it('never looks for a mistyped local path on the hub', async () => {
    const hub = await openHub()
    const daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
    const { page } = await openPage(daemon)
    for (const typed of [`${daemon.folder}/nosuch.gguf`, '~/nosuch', './models/x', 'nosuch.gguf', 'C:\\models\\x']) {
      await lookFor(page, typed)
      await page.getByRole('heading', { name: 'on this machine' }).waitFor()
      expect(await page.locator('main').textContent()).toContain(typed.replace(/^~/, ''))
    }
    expect(hub.requests).toEqual([])
  })

  it('keeps an import from disk private', async () => {
    const daemon = await testDaemon({ fileConfig: { hub: { endpoint: 'http://127.0.0.1:9' }, swarm: QUIET_SWARM } })
    const path = join(daemon.folder, 'mine-q8_0.gguf')
    await writeFile(path, gguf(2))
    const { page } = await openPage(daemon)
    await lookFor(page, path)
    await page.getByRole('checkbox', { name: 'Keep private' }).check()
    await page.getByLabel('Name here').fill('me/mine')
    await button(page, 'Import').click()
    await expect.poll(async () => (await daemon.svc('ls', '-q')).stdout).toContain('me/mine')
    expect((await daemon.svc('why', 'me/mine')).stdout).toMatch(/private/)
  })

  it('names the remedy of a damaged local model: import it again, under its name', async () => {
    const daemon = await testDaemon()
    await importLocal(daemon, 'acme/hurt', 5)
    damageLargest(daemon)
    expect((await daemon.svc('verify', 'all')).code).not.toBe(0)
    const { page } = await openPage(daemon)
    await show(page, 'jobs')
    const failed = page.locator('[data-job="failed"]')
    await failed.getByRole('link', { name: 'acme/hurt:q8_0' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Import it again from the files').waitFor()
    await dialog.getByRole('link', { name: /^Import again/ }).click()
    await page.getByText('it will be imported as acme/hurt').waitFor()
    await page.getByRole('searchbox').fill(join(daemon.folder, 'acme-hurt'))
    await button(page, 'Look').click()
    expect(await page.getByLabel('Name here').inputValue()).toBe('acme/hurt')
    await button(page, 'Import').click()
    await page.getByText('acme/hurt is done').waitFor()
    expect((await daemon.svc('verify', 'all')).code).toBe(0)
  })

  it('fetches a damaged model of the hub again', async () => {
    const hub = await openHub()
    const daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
    await ok(daemon, 'import', 'Acme/Open-GGUF')
    damageLargest(daemon)
    expect((await daemon.svc('verify', 'acme/open-gguf')).code).not.toBe(0)
    const { page } = await openPage(daemon)
    await show(page, 'jobs')
    await page.locator('[data-job="failed"]').getByRole('button', { name: 'Fetch what is missing' }).click()
    await page.locator('[data-job="done"]', { hasText: 'Complete' }).waitFor()
    expect((await daemon.svc('verify', 'all')).code).toBe(0)
  })

  it('tries again, or takes another file, by what failed', async () => {
    const hub = await openHub()
    const daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
    await mkdir(join(daemon.folder, 'no'))
    await writeFile(join(daemon.folder, 'no/no-q8_0.gguf'), 'hello')
    await daemon.svc('import', 'local', 'no', '--as', 'me/no')
    const { page } = await openPage(daemon)
    await show(page, 'jobs')
    const failed = page.locator('[data-job="failed"]', { hasText: 'me/no' })
    await failed.getByRole('link', { name: 'Choose another file' }).click()
    await page.getByText('it will be imported as me/no').waitFor()
    await page.goBack()
    await writeFile(join(daemon.folder, 'no/no-q8_0.gguf'), gguf(3))
    await failed.getByRole('button', { name: /^Try again/ }).click()
    await page.locator('[data-job="done"]', { hasText: 'me/no' }).waitFor()
    // done: it leads to its model
    await page.locator('[data-job="done"]').getByRole('link', { name: 'me/no' }).click()
    await page.getByRole('dialog', { name: 'me/no:q8_0' }).waitFor()
  })

  it('frees space where a disk is full', async () => {
    const daemon = await testDaemon({
      fileConfig: {
        store: { max_bytes: 2_800_000 },
        swarm: { enabled: false },
        hub: { endpoint: 'http://127.0.0.1:9' }
      }
    })
    await importLocal(daemon, 'acme/base', 5)
    const path = join(daemon.folder, 'more-q8_0.gguf')
    await writeFile(path, gguf(6))
    expect((await daemon.svc('import', path, '--as', 'acme/more')).code).not.toBe(0)
    const { page } = await openPage(daemon)
    await show(page, 'jobs')
    const failed = page.locator('[data-job="failed"]')
    await failed.getByRole('button', { name: /^Collect garbage/ }).click()
    await page.getByRole('dialog').getByText('Nothing to collect').waitFor()
    await page.keyboard.press('Escape')
    await failed.getByRole('link', { name: 'Choose models to free' }).click()
    await row(page, /^acme\/base/).click()
    await button(page, 'Remove…').click()
    await button(page, 'Remove').click()
    await expect.poll(() => row(page, /^acme\/base/).count()).toBe(0)
    await show(page, 'jobs')
    await failed.getByRole('button', { name: /^Try again/ }).click()
    await page.locator('[data-job="done"]', { hasText: 'acme/more' }).waitFor()
  })
})
