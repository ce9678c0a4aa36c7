import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const PYTHON = '/usr/bin/python3'
const SCRIPT = fileURLToPath(new URL('./swift_s3.py', import.meta.url))

/** Debian's python3-swift, whose S3 interface checks signatures, ranges, parts and clocks like object stores do. */
export const haveS3Server: boolean =
  process.env.SVC_REQUIRE_INTEROP === '1' ||
  spawnSync(PYTHON, ['-c', 'from swift.common.middleware.s3api import s3api'], { stdio: 'ignore' }).status === 0

/** A bucket on a real S3 server on loopback. */
export interface S3Server {
  /** `http://127.0.0.1:port`, for path-style addressing. */
  readonly endpoint: string
  readonly bucket: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Base URL for reading the bucket without a signature; ends in a slash. */
  readonly publicUrl: string
  /** The environment for AWS tools: keys, region and endpoint. */
  readonly env: Readonly<Record<string, string>>
  stop(): Promise<void>
}

/** Smallest part of a multipart upload here, instead of 5 MiB. */
export const MIN_PART_BYTES = 65_536

/** Starts Swift on a folder of a file system with extended attributes. */
export async function startS3Server(folder: string): Promise<S3Server> {
  mkdirSync(folder, { recursive: true })
  const [bucket, accessKeyId, secretAccessKey] = ['models', 'test:tester', 'a+secret/of=tests']
  const settings = { folder, bucket, accessKey: accessKeyId, secretKey: secretAccessKey, minPartBytes: MIN_PART_BYTES }
  const child = spawn(PYTHON, [SCRIPT, JSON.stringify(settings)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const endpoint = `http://127.0.0.1:${await portOf(child)}`
  return {
    endpoint,
    bucket,
    accessKeyId,
    secretAccessKey,
    publicUrl: `${endpoint}/v1/AUTH_test/${bucket}/`,
    env: {
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_REGION: 'us-east-1',
      AWS_ENDPOINT_URL_S3: endpoint,
      AWS_EC2_METADATA_DISABLED: 'true'
    },
    stop: () =>
      new Promise((done) => {
        child.once('exit', () => done())
        child.stdin!.end()
      })
  }
}

function portOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout! }).once('line', (line) => resolve(JSON.parse(line).port as number))
    child.once('exit', (code) => reject(new Error(`the S3 server ended with ${code}`)))
  })
}
