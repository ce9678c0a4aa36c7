import type { Command } from 'commander'
import { type CommandTools, IMAGE, list, PLAIN_HTTP, WITHHELD } from '../command-tools.ts'

function addSignatureCommands(program: Command, { add, run }: CommandTools): void {
  add(
    program,
    'verify-signature <ref>',
    'check who signed a model (OpenSSF model signing), and that its files are unchanged'
  )
    .option('--key <file>', 'a public key (PEM) of a signer whom you trust; repeatable', list)
    .option('--certificate <file>', "a certificate (PEM) that the signer's has to lead to; repeatable", list)
    .option('--root <file>', 'a trust root of Sigstore (trusted_root.json), for who logged in to sign')
    .option('--issuer <url>', 'where they logged in')
    .option('--subject <name>', 'who they are there: an e-mail address or a URI')
    .option('--signature <file>', 'the signature; default: model.sig beside the model')
    .option('--allow-uncovered', 'files that are not signed may lie in the folder')
    .action(run(() => import('./signature.ts').then(({ verifyModel }) => verifyModel)))
  add(program, 'sign <ref>', 'sign all files of a model, for svc verify-signature and other tools of that format')
    .requiredOption('--key <file>', 'your private key (PEM): elliptic curve P-256, P-384 or P-521')
    .option('--certificate <file>', 'the certificate of the key (PEM), and those that it leads to')
    .requiredOption('--output <file>', 'where to write the signature')
    .action(run(() => import('./signature.ts').then(({ sign }) => sign)))
}

/** The commands that export models, tell who may have them, and sign: `export`, `push`, `publish`, `why`, `sign`, `verify-signature`. */
export function addPassOnCommands(program: Command, tools: CommandTools): void {
  const { add, group, run } = tools
  addSignatureCommands(program, tools)
  add(program, 'why <ref>', 'show who may have a model, by which door, and why; with ns/name for all quants').action(
    run(() => import('./why.ts').then(({ why }) => why))
  )
  const exports = group('export', 'write models in formats for other machines and tools')
  add(
    exports,
    'oci <ref...>',
    'write an OCI image layout; the last argument is the destination: a folder, or a file that ends in .tar'
  )
    .addOption(IMAGE)
    .addOption(WITHHELD)
    .action(run(() => import('./oci.ts').then(({ exportOci }) => exportOci)))
  add(program, 'push <ref> <image>', 'push a model to a registry: registry/name[:tag]; the tag defaults to the quant')
    .addOption(IMAGE)
    .option('--mount-from <name>', 'a repository of that registry that already has the files')
    .addOption(PLAIN_HTTP)
    .addOption(WITHHELD)
    .action(run(() => import('./oci.ts').then(({ push }) => push)))
  add(
    program,
    'publish <ref...>',
    'write models where a web server or bucket can serve them; the last argument is the destination: a folder, or s3://bucket/prefix'
  )
    .option(
      '--url <url>',
      'public address of the destination: written into the torrents; samples are read back from it'
    )
    .option('--no-check', 'do not read back from --url, for example before the server runs')
    .option('--tracker <url>', 'a tracker for the torrents; repeatable', list)
    .option('--endpoint <url>', 'address of an S3-compatible store; default: AWS_ENDPOINT_URL_S3')
    .option('--region <name>', 'region of the bucket; default: AWS_REGION')
    .addOption(WITHHELD)
    .action(run(() => import('./publish.ts').then(({ publish }) => publish)))
}
