import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A tracker that knows nobody, until the end of the test, and what it was told. */
export async function listeningTracker(): Promise<{ announces: string[]; trackers: string[] }> {
  const announces: string[] = []
  const tracker = createServer((request, response) => {
    announces.push(request.url!)
    response.end('d8:intervali60e5:peers0:e')
  })
  await new Promise<void>((listening) => tracker.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void tracker.close())
  return { announces, trackers: [`http://127.0.0.1:${(tracker.address() as AddressInfo).port}/announce`] }
}
