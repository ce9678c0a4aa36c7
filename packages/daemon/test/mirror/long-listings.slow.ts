import { expect, onTestFinished, test } from 'vitest'
import { STRANGER_HUB, StrangerListings } from '../../../sources/src/hub/stranger-listing.ts'
import { startLongHub } from './long-listings.ts'

test('a listing of 100,000 long names is abandoned after its first megabytes, in its own thread', async () => {
  const { endpoint, pages } = await startLongHub()
  const listings = new StrangerListings({ endpoint, ...STRANGER_HUB })
  onTestFinished(() => listings.close())
  const asked = { repo: 'acme/long', revision: undefined, isNamedOnly: false }
  let readBytes = 0
  const reading = listings.list(asked, (bytes) => {
    readBytes += bytes
  })
  await expect(reading).rejects.toMatchObject({ code: 'E_NOT_IMPORTABLE' })
  expect(pages()).toBeLessThan(20)
  // refused bytes were read all the same
  expect(readBytes).toBeGreaterThan(STRANGER_HUB.limits.listingBytes)
})
