import type { Command } from 'commander'
import type { CommandTools } from './keep.ts'

const list = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value]

/** The commands that export models: `export`, `push`, `publish`. */
export function addPassOnCommands(program: Command, { add, group, run }: CommandTools): void {
  const exports = group('export', 'write models out, for other machines and tools')
  add(
    exports,
    'oci <ref...>',
    'as an OCI image layout; the last word is the place: a folder, or a file that ends in .tar'
  )
    .option('--image', 'an ordinary image with the files below models/, for runtimes that mount no artifacts')
    .option('--withheld', 'also what is private, or came from a repository that asks for access')
    .action(async (words: string[], options, command: Command) =>
      run(command, async (session) => (await import('./oci.ts')).exportOci(session, words, options))
    )
  add(program, 'push <ref> <image>', 'send a model to a registry: registry/name[:tag]; without a tag it is the quant')
    .option('--image', 'an ordinary image with the files below models/, for runtimes that mount no artifacts')
    .option('--mount-from <name>', 'a repository of that registry that has the files already')
    .option('--plain-http', 'without TLS, as it is done with registries on this machine')
    .option('--withheld', 'also what is private, or came from a repository that asks for access')
    .action(async (ref: string, image: string, options, command: Command) =>
      run(command, async (session) => (await import('./oci.ts')).push(session, ref, image, options))
    )
  add(
    program,
    'publish <ref...>',
    'write models where a web server or bucket gives them out; the last word is the place: a folder, or s3://bucket/prefix'
  )
    .option('--url <url>', 'where readers find the place; goes into the torrents, and is read from afterwards')
    .option('--no-check', 'do not read from --url: it is not served yet')
    .option('--tracker <url>', 'a tracker to name in the torrents; repeatable', list)
    .option('--endpoint <url>', "of an object store that is not Amazon's; default: AWS_ENDPOINT_URL_S3")
    .option('--region <name>', 'of the bucket; default: AWS_REGION')
    .option('--withheld', 'also what is private, or came from a repository that asks for access')
    .action(async (words: string[], options, command: Command) =>
      run(command, async (session) => (await import('./publish.ts')).publish(session, words, options))
    )
}
