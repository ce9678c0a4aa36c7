import { spawnSync } from 'node:child_process'
import { type Browser, chromium } from 'playwright-core'

export type { Browser, BrowserContext, Page } from 'playwright-core'

/** Debian's chromium. With SVC_REQUIRE_INTEROP=1 tests run regardless, and fail without it. */
const PROGRAM = 'chromium'
const found = spawnSync('sh', ['-c', `command -v ${PROGRAM}`], { encoding: 'utf8' }).stdout.trim()

export const haveBrowser: boolean = process.env.SVC_REQUIRE_INTEROP === '1' || found !== ''

/** A browser without a window. Names in `hosts` lead to this machine, all others nowhere. */
export const startBrowser = (hosts: readonly string[] = []): Promise<Browser> =>
  chromium.launch({
    executablePath: found,
    args: [
      // root has no sandbox of its own
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
      `--host-resolver-rules=${[...hosts.map((host) => `MAP ${host} 127.0.0.1`), 'MAP * ~NOTFOUND', 'EXCLUDE 127.*', 'EXCLUDE *.localhost'].join(', ')}`
    ]
  })
