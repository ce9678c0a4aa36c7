import type { Command } from 'commander'
import type { CommandTools } from './keep.ts'

const list = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value]

/** The commands that export models, and the one that tells who may have them: `export`, `push`, `publish`, `why`. */
export function addPassOnCommands(program: Command, { add, group, run }: CommandTools): void {
  add(program, 'why <ref>', 'show to whom a model is given, by which door, and why; with ns/name all quants').action(
    async (ref: string, _options, command: Command) =>
      run(command, async (session) => (await import('./why.ts')).why(session, ref))
  )
  const exports = group('export', 'write models in formats for other machines and tools')
  add(
    exports,
    'oci <ref...>',
    'write an OCI image layout; the last argument is the destination: a folder, or a file that ends in .tar'
  )
    .option('--image', 'an ordinary image with the files below models/, for runtimes that mount no artifacts')
    .option('--withheld', 'also what is withheld, with a mark for whoever gets it; svc why says what is')
    .action(async (words: string[], options, command: Command) =>
      run(command, async (session) => (await import('./oci.ts')).exportOci(session, words, options))
    )
  add(program, 'push <ref> <image>', 'push a model to a registry: registry/name[:tag]; the tag defaults to the quant')
    .option('--image', 'an ordinary image with the files below models/, for runtimes that mount no artifacts')
    .option('--mount-from <name>', 'a repository of that registry that already has the files')
    .option('--plain-http', 'use HTTP without TLS, as local registries do')
    .option('--withheld', 'also what is withheld, with a mark for whoever gets it; svc why says what is')
    .action(async (ref: string, image: string, options, command: Command) =>
      run(command, async (session) => (await import('./oci.ts')).push(session, ref, image, options))
    )
  add(
    program,
    'publish <ref...>',
    'write models where a web server or bucket can serve them; the last argument is the destination: a folder, or s3://bucket/prefix'
  )
    .option(
      '--url <url>',
      'public address of the destination: goes into the torrents, and samples are read back from it'
    )
    .option('--no-check', 'do not read back from --url, for example because nothing is served there yet')
    .option('--tracker <url>', 'a tracker for the torrents; repeatable', list)
    .option('--endpoint <url>', 'address of an S3-compatible store; default: AWS_ENDPOINT_URL_S3')
    .option('--region <name>', 'region of the bucket; default: AWS_REGION')
    .option('--withheld', 'also what is withheld, with a mark for whoever gets it; svc why says what is')
    .action(async (words: string[], options, command: Command) =>
      run(command, async (session) => (await import('./publish.ts')).publish(session, words, options))
    )
}
