import { getPriority } from 'node:os'
import { serveCalls, yieldToOthers } from '../src/index.ts'

/** What the tests' thread can do. */
export interface EchoCalls {
  echo: { request: unknown; response: unknown }
  count: { request: number; response: number; progress: number }
  fail: { request: { message: string; code: string }; response: never }
  untilAborted: { request: undefined; response: never; progress: 'waiting' }
  die: { request: undefined; response: never }
  exit: { request: undefined; response: never }
  spin: { request: undefined; response: never }
  which: { request: undefined; response: number }
  owe: { request: undefined; response: void; progress: string }
  pay: { request: undefined; response: void; progress: string }
  lower: { request: number; response: number }
}

const born = Math.random()

let owed: () => void = () => undefined

serveCalls<EchoCalls>({
  echo: (request) => request,
  count: (upTo, { progress }) => {
    for (let at = 1; at <= upTo; at++) progress(at)
    return upTo
  },
  fail: ({ message, code }) => {
    throw Object.assign(new Error(message), { code })
  },
  untilAborted: (_, { signal, progress }) =>
    new Promise((_resolve, reject) => {
      progress('waiting')
      signal.addEventListener('abort', () => reject(Object.assign(new Error('aborted over there'), { code: 'GONE' })))
    }),
  die: () =>
    new Promise(() => {
      // past every handler, as a defect would.
      setImmediate(() => {
        throw new Error('a defect')
      })
    }),
  exit: () => process.exit(3),
  spin: () => {
    for (;;);
  },
  which: () => born,
  // reports after its answer, as a defect would.
  owe: (_, { progress }) => {
    owed = () => progress('late')
  },
  pay: (_, { progress }) => {
    owed()
    progress('in time')
  },
  lower: (nice) => {
    yieldToOthers(nice)
    return getPriority(0)
  }
})
