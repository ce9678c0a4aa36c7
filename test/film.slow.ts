// The film in README.md is a recording of what the commands print today.
import { readFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { haveBrowser, startBrowser } from '../packages/testkit/src/browser.ts'
import { filmOf, recorded } from '../scripts/terminal.ts'

const kept = readFileSync(new URL('../docs/guide/terminal.svg', import.meta.url), 'utf8')

/** What the film shows, without what differs by machine and time: free space, memory, digests, the width of columns. */
const shownIn = (film: string): string[] =>
  [...film.matchAll(/<text[^>]*>([^<]*)/g)].map(([, text = '']) =>
    text
      .replace(/[0-9a-f]{40,64}/g, 'DIGEST')
      .replace(/\d+(?:\.\d+)? [KMGT]iB of (?:RAM|VRAM|disk free)/g, 'SO MUCH')
      .replace(/ +/g, ' ')
  )

it('the film shows what the commands print', async () => {
  expect(shownIn(kept)).toEqual(shownIn(filmOf(await recorded())))
})

describe.skipIf(!haveBrowser)('in a browser (chromium is needed)', () => {
  it('it plays, and is still and whole where motion is not wanted', async () => {
    const browser = await startBrowser()
    onTestFinished(() => browser.close())
    const page = await browser.newPage()
    await page.setContent(kept)
    const shown = (): Promise<number> =>
      page.evaluate<number>(
        `[...document.querySelectorAll('text')].filter((each) => {
          const { visibility, clipPath } = getComputedStyle(each)
          return visibility === 'visible' && !clipPath.includes('100%')
        }).length`
      )
    const all = await page.locator('text').count()
    expect(all).toBeGreaterThan(20)
    expect(await shown()).toBeLessThan(all)
    // at its end
    await page.evaluate('document.getAnimations().forEach((each) => each.pause())')
    await page.evaluate(
      `document.getAnimations().forEach((each) => { each.currentTime = each.effect.getTiming().duration - 1 })`
    )
    expect(await shown()).toBe(all)
    await page.emulateMedia({ reducedMotion: 'reduce' })
    expect(await shown()).toBe(all)
    expect(await page.evaluate('document.getAnimations().length')).toBe(0)
  })
})
