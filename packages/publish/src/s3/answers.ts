import { pipeline, Readable, Transform } from 'node:stream'
import type { S3Client } from '@aws-sdk/client-s3'
import { PublishError } from '../errors.ts'

/** A list of 1,000 parts has 300 KiB; everything else is shorter. */
const MAX_ANSWER_BYTES = 1 << 20

/**
 * Cuts off answers that are longer than any of S3's, since the client reads them whole. The contents of objects pass:
 * their readers bound them.
 */
export function boundAnswers(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const result = await next(args)
        const response = result.response as { statusCode?: number; body?: unknown }
        const isContent = commandName === 'GetObjectCommand' && (response.statusCode ?? 500) < 300
        if (!isContent && response.body instanceof Readable) response.body = bounded(response.body)
        return result
      },
    // next to the connection, before anything is parsed
    { step: 'deserialize', priority: 'low', name: 'boundAnswers' }
  )
}

function bounded(body: Readable): Readable {
  let length = 0
  const limit = new Transform({
    transform: (chunk: Uint8Array, _encoding, done) => {
      length += chunk.length
      if (length <= MAX_ANSWER_BYTES) return done(null, chunk)
      done(new PublishError('E_UNAVAILABLE', `the store sent more than ${MAX_ANSWER_BYTES} bytes`))
    }
  })
  // whoever reads it gets its error
  return pipeline(body, limit, () => undefined)
}
