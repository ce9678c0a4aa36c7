// Publishes a model in a process of its own, which kills itself at the n-th report of progress.
import { parseDigest } from '@svc/ref'
import { MIN_PART_BYTES } from '@svc/testkit/s3-server'
import { openTarget, parsePlace, publicationOf, publish } from '../src/index.ts'

const [model, place, killAt] = process.argv.slice(2) as [string, string, string]
const { manifest, manifestDigest, ref, folder } = JSON.parse(model) as Record<string, string>
const publication = await publicationOf({
  manifest: Buffer.from(manifest!, 'base64'),
  manifestDigest: parseDigest(manifestDigest!),
  ref,
  pathOf: (digest) => `${folder}/${digest.slice('sha256:'.length)}`
})
const target = await openTarget(parsePlace(place, '/'), { partBytes: MIN_PART_BYTES })
let steps = 0
await publish([publication], target, {
  onProgress: () => {
    steps += 1
    if (steps === Number(killAt)) process.kill(process.pid, 'SIGKILL')
  }
})
await target.close()
console.log(steps)
