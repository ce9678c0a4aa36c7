// What the page has for those who come from other tools: several at once, pauses, facts, adoption, advice, the log.
import { mkdirSync, writeFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { haveBrowser } from '@svc/testkit/browser'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ok, QUIET_SWARM, testDaemon } from '../support.ts'
import { putHub } from '../tool-caches.ts'
import { button, gguf, importLocal, lookFor, row, sharedBrowser, show } from './page-world.ts'

describe.skipIf(!haveBrowser)('the page has what others have (chromium is needed)', () => {
  const { openPage } = sharedBrowser()

  it('pins, keeps private, frees and removes several models at once', async () => {
    const daemon = await testDaemon({ fileConfig: { hub: { endpoint: 'http://127.0.0.1:9' }, swarm: QUIET_SWARM } })
    for (const [i, name] of ['one', 'two', 'three'].entries()) await importLocal(daemon, `acme/${name}`, i + 3)
    const { page } = await openPage(daemon)
    await page.getByRole('checkbox', { name: 'Choose acme/one:q8_0' }).check()
    // with Shift, all in between
    await page.getByRole('checkbox', { name: 'Choose acme/two:q8_0' }).click({ modifiers: ['Shift'] })
    await page.getByText('3 quants chosen').waitFor()
    await page.getByRole('checkbox', { name: 'Choose acme/two:q8_0' }).uncheck()
    await button(page, 'Pin').click()
    await expect.poll(() => row(page, /pinned$/).count()).toBe(2)
    await button(page, 'Unpin').click()
    await expect.poll(() => row(page, /pinned$/).count()).toBe(0)
    await button(page, 'Keep private').click()
    await button(page, 'Share again').waitFor()
    expect((await daemon.svc('why', 'acme/one')).stdout).toMatch(/private/)
    await button(page, 'Free the weights').click()
    // nobody else has them: each says so
    await show(page, 'jobs')
    await expect.poll(() => page.locator('[data-job="failed"]').count()).toBe(2)
    await show(page, 'models')
    await button(page, 'Remove…').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('This frees at least 2.').waitFor()
    expect(await dialog.getByRole('listitem').allTextContents()).toEqual(['acme/one:q8_0', 'acme/three:q8_0'])
    await button(page, 'Remove').click()
    await expect.poll(() => row(page, /^acme/).count()).toBe(1)
    expect((await daemon.svc('ls', '-q')).stdout.trim()).toBe('acme/two:q8_0')
  })

  it('pauses a download, and goes on from where it was', async () => {
    const hub = await startFakeHub()
    onTestFinished(() => hub.close())
    const head = gguf(1)
    const size = 8 * 1024 * 1024
    const content = Buffer.concat([head, Buffer.alloc(size - head.length, 7)])
    hub.commit({ id: 'Acme/Large-GGUF', files: [{ path: 'large-q8_0.gguf', content }] })
    const fault = { kind: 'drip', stepBytes: 16 * 1024, everyMs: 50 } as const
    hub.setFaults(scriptedFaults([{ stage: 'cdn', fault }]))
    const daemon = await testDaemon({ fileConfig: { hub: { endpoint: hub.endpoint }, swarm: { enabled: false } } })
    const { page } = await openPage(daemon)
    await lookFor(page, 'Acme/Large-GGUF')
    await button(page, /^Get the selected quants/).click()
    await show(page, 'jobs')
    const sent = (): number => hub.bytesSent.get('large-q8_0.gguf') ?? 0
    await expect.poll(sent, { timeout: 20_000 }).toBeGreaterThan(2 * 1024 * 1024)
    await button(page, 'Pause acme/large-gguf').click()
    const paused = page.locator('[data-job]', { hasText: 'paused' })
    await paused.waitFor()
    const before = sent()
    hub.setFaults(undefined)
    await button(page, 'Continue: acme/large-gguf').click()
    await page.locator('[data-job="done"]', { hasText: 'acme/large-gguf' }).waitFor()
    expect(sent() - before).toBeLessThan(size)
  })

  it('says what a model is: its files, kind, parameters, context, licence and card', async () => {
    const daemon = await testDaemon()
    const folder = join(daemon.folder, 'known')
    await mkdir(folder)
    await writeFile(join(folder, 'known-q8_0.gguf'), gguf(3))
    await writeFile(join(folder, 'README.md'), CARD)
    await writeFile(join(folder, 'config.json'), '{"auto_map":{"AutoModel":"x.X"}}')
    await ok(daemon, 'import', 'local', 'known', '--as', 'acme/known', '--companions', 'all')
    const used = (await daemon.svc('ls', '--json')).stdout
    const { page } = await openPage(daemon)
    await row(page, /^acme\/known/).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Kind').waitFor()
    const facts = await dialog.locator('.facts').textContent()
    expect(facts).toMatch(/KindGGUF/)
    expect(facts).toMatch(/Parameters1M|Parameters\d/)
    await dialog.getByText('RUNS CODE config.json (auto_map) loads classes from Python files').waitFor()
    await dialog.getByText(/^\d files?$/).click()
    await dialog.getByRole('rowheader', { name: 'known-q8_0.gguf' }).waitFor()
    await dialog.getByText('Model card').click()
    await dialog.getByRole('heading', { name: 'A known model' }).waitFor()
    const card = dialog.locator('.markdown')
    expect(await card.getByRole('link').getAttribute('href')).toBe('https://models.example/known')
    // it is read as text: nothing in it is markup
    expect(await card.locator('img, script, b').count()).toBe(0)
    // to look at it is no use of it
    expect((await daemon.svc('ls', '--json')).stdout).toBe(used)
  })

  it('shows what other tools have on this disk, and adopts it with one click, privately', async () => {
    const daemon = await testDaemon({ fileConfig: { hub: { endpoint: 'http://127.0.0.1:9' }, swarm: QUIET_SWARM } })
    const home = join(daemon.folder, 'home')
    mkdirSync(home)
    const cache = join(home, '.cache/huggingface/hub')
    putHub(cache, 'Acme/Other-GGUF', { 'other-q8_0.gguf': gguf(4) })
    writeFileSync(join(home, 'unrelated'), '')
    const { page } = await openPage(daemon, {}, { env: { HOME: home } })
    await show(page, 'get')
    const section = page.getByRole('region', { name: 'In other tools on this disk' })
    await section.getByText('Acme/Other-GGUF', { exact: true }).waitFor()
    await button(page, 'Adopt: Acme/Other-GGUF').click()
    await page.getByText('acme/other-gguf is done').waitFor()
    await expect.poll(() => section.count()).toBe(0)
    expect((await daemon.svc('why', 'acme/other-gguf')).stdout).toMatch(/private/)
  })

  it('recommends a quant, and says why', async () => {
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
    const { page } = await openPage(daemon)
    await lookFor(page, 'Acme/Tiny-GGUF')
    await page.getByText(/^Recommended: the largest that fits is q8_0: .* of RAM\.$/).waitFor()
    const best = page.getByRole('row', { name: /q8_0.*recommended/ })
    expect(await best.getByRole('checkbox').isChecked()).toBe(true)
  })

  it('shows the log of the daemon', async () => {
    const daemon = await testDaemon()
    const state = join(daemon.folder, 'home/.local/state/svc')
    mkdirSync(state, { recursive: true })
    writeFileSync(join(state, 'svcd.log'), 'info: the first line\nwarn: a disk is slow\n')
    const { page } = await openPage(daemon, {}, { env: { HOME: join(daemon.folder, 'home') } })
    await show(page, 'machine')
    await button(page, 'Show the log').click()
    await page.getByText('warn: a disk is slow').waitFor()
  })
})

const CARD = `---
license: apache-2.0
---
# A known model

It is <b>known</b>, see [its page](https://models.example/known). ![picture](https://models.example/p.png)

- one
- two

<script>alert(1)</script>
`
