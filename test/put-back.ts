// Test files share processes: what one leaves of a false clock would hang the next, so it is the one that fails.
import { afterAll, vi } from 'vitest'

const real = Symbol.for('svc.test.setTimeout')
const own = globalThis as { [real]?: typeof setTimeout }
own[real] ??= globalThis.setTimeout

afterAll(() => {
  if (vi.isFakeTimers() || globalThis.setTimeout !== own[real]) throw new Error('this file did not put the clock back')
})
