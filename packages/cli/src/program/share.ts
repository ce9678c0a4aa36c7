import { Argument } from 'commander'
import { type CommandTools, DAEMON, IMAGE, list, PLAIN_HTTP, WITHHELD } from './tools.ts'

export function addShareCommands({ add, group, run, runAtOnce }: CommandTools): void {
  add(
    'share <ref>',
    'share a model now, and print the command for another machine; with ns/name all its quants'
  ).action(run('daemon', 'share'))
  add('seed', 'show whether models are shared with others, or turn sharing on or off')
    .addArgument(new Argument('[switch]', 'takes effect now and is saved in the configuration').choices(['on', 'off']))
    .addOption(DAEMON)
    .action(runAtOnce('seed', 'seed'))
  add('limit', 'show or set how fast models are fetched and shared')
    .addArgument(
      new Argument('[direction]', 'takes effect now and is saved in the configuration').choices(['download', 'upload'])
    )
    .argument('[rate]', 'bytes per second, such as 20MB; off: no limit')
    .action(run('seed', 'limit'))
  add('private <ref...>', 'keep models private; with ns/name all its quants')
    .option('--off', 'share them again')
    .action(run('remove', 'setPrivate'))
  add('why <ref>', 'show who can get a model, through which door, and why; with ns/name all its quants').action(
    run('why', 'why')
  )
  add('swarm', 'show the shared models, their peers and rates').action(run('daemon', 'swarm'))
  const exports = group('export', 'write models in formats for other machines and tools')
  add(
    'oci <ref...>',
    'write an OCI image layout; the last argument is the destination: a folder, or a file that ends in .tar',
    exports
  )
    .addOption(IMAGE)
    .addOption(WITHHELD)
    .action(run('oci', 'exportOci'))
  add('push <ref> <image>', 'push a model to a registry: registry/name[:tag]; the tag defaults to the quant')
    .addOption(IMAGE)
    .option('--mount-from <name>', 'a repository of the same registry that has the files')
    .addOption(PLAIN_HTTP)
    .addOption(WITHHELD)
    .action(run('oci', 'push'))
  add(
    'publish <ref...>',
    'write models for a web server or bucket; the last argument is the destination: a folder, or s3://bucket/prefix'
  )
    .option(
      '--url <url>',
      'public URL of the destination; svc writes it into the torrents and reads samples back from it'
    )
    .option('--no-check', 'do not read back from --url, for example before the server runs')
    .option('--tracker <url>', 'a tracker for the torrents; repeatable', list)
    .option('--endpoint <url>', 'URL of an S3-compatible store; default: AWS_ENDPOINT_URL_S3')
    .option('--region <name>', 'region of the bucket; default: AWS_REGION')
    .addOption(WITHHELD)
    .action(run('publish', 'publish'))
  add('sign <ref>', 'sign all files of a model in the OpenSSF model signing format')
    .requiredOption('--key <file>', 'your private key (PEM): elliptic curve P-256, P-384 or P-521')
    .option('--certificate <file>', 'certificate of the key (PEM), followed by its chain')
    .requiredOption('--output <file>', 'where to write the signature')
    .action(run('signature', 'sign'))
}
