// Amazon's own client in a process of its own: `node stock-s3-client.ts ENDPOINT PREFIX` waits until a safetensors is listed below the prefix,
// and reads it as loaders do: the header, then each tensor. It prints a line when it waits, one when the header is here, and the SHA-256 of the file.
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'

const [endpoint, Prefix] = process.argv.slice(2) as [string, string]
const credentials = { accessKeyId: 'DEMO', secretAccessKey: 'not-a-secret' }
const s3 = new S3Client({ endpoint, region: 'us-east-1', credentials, forcePathStyle: true })
const Bucket = 'models'

async function keyBelow(): Promise<string> {
  for (let tries = 0; tries < 600; tries++) {
    const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket, Prefix }))
    const key = Contents.map(({ Key }) => Key!).find((each) => each.endsWith('.safetensors'))
    if (key !== undefined) return key
    if (tries === 0) process.stdout.write('nothing is listed yet\n')
    await delay(100)
  }
  throw new Error(`there is no safetensors below ${Prefix}`)
}

const Key = await keyBelow()
const hash = createHash('sha256')
async function read(start: number, end: number): Promise<Uint8Array> {
  const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key, Range: `bytes=${start}-${end - 1}` }))
  const bytes = await Body!.transformToByteArray()
  hash.update(bytes)
  return bytes
}

const length = await read(0, 8)
const dataAt = 8 + Number(new DataView(length.buffer, length.byteOffset).getBigUint64(0, true))
const header = JSON.parse(new TextDecoder().decode(await read(8, dataAt))) as Record<
  string,
  { readonly data_offsets?: readonly [number, number] }
>
process.stdout.write(`header of ${Key}\n`)
const tensors = Object.values(header).flatMap(({ data_offsets: at }) => (at === undefined ? [] : [at]))
for (const [start, end] of tensors.sort(([a], [b]) => a - b)) await read(dataAt + start, dataAt + end)
process.stdout.write(`${hash.digest('hex')}\n`)
