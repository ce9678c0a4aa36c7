"""Reads a bucket of one model with boto3, and with fsspec over the SDK for C++, and says what came, as JSON."""

import base64
import hashlib
import json
import sys

import boto3
import pyarrow.fs
from botocore.config import Config
from botocore.exceptions import ClientError
from fsspec.implementations.arrow import ArrowFSWrapper

endpoint, prefix, key_id, secret = sys.argv[1:]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def client(**options):
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="eu-north-1",
        aws_access_key_id=options.get("key_id", key_id),
        aws_secret_access_key=options.get("secret", secret),
        config=Config(retries={"max_attempts": 1}),
    )


def refused(call):
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"]
    return None


def with_boto3():
    s3 = client()
    pages = s3.get_paginator("list_objects_v2").paginate(
        Bucket="models", Prefix=prefix, PaginationConfig={"PageSize": 2}
    )
    first = s3.get_paginator("list_objects").paginate(Bucket="models", Prefix=prefix, PaginationConfig={"PageSize": 2})
    listed = {each["Key"]: each["Size"] for page in pages for each in page.get("Contents", [])}
    whole, head = {}, {}
    for key in listed:
        answer = s3.get_object(Bucket="models", Key=key)
        whole[key] = sha256(answer["Body"].read())
        # what boto3 checks by itself
        assert base64.b64decode(answer["ChecksumSHA256"]).hex() == whole[key]
        head[key] = s3.head_object(Bucket="models", Key=key)["ContentLength"]
    largest = max(listed, key=listed.get)
    parts = [s3.get_object(Bucket="models", Key=largest, Range=each)["Body"].read() for each in ("bytes=0-99", "bytes=100-")]
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "models", "Key": largest}, ExpiresIn=60)
    body = {"Bucket": "models", "Key": largest}
    return {
        "buckets": [each["Name"] for each in s3.list_buckets()["Buckets"]],
        "location": s3.get_bucket_location(Bucket="models")["LocationConstraint"],
        "folders": [
            each["Prefix"] for each in s3.list_objects_v2(Bucket="models", Delimiter="/")["CommonPrefixes"]
        ],
        "listed": listed,
        "first version": [each["Key"] for page in first for each in page.get("Contents", [])],
        "whole": whole,
        "head": head,
        "parts": sha256(b"".join(parts)),
        "presigned": url,
        "refused": [
            refused(lambda: s3.put_object(Body=b"x", **body)),
            refused(lambda: s3.delete_object(**body)),
            refused(lambda: s3.get_object(Bucket="models", Key="no/such/key/x")),
            refused(lambda: client(secret="another-secret").get_object(**body)),
            refused(lambda: client(key_id="NOBODY").get_object(**body)),
            refused(lambda: s3.get_object(Range="bytes=99999999999-", **body)),
        ],
    }


def with_fsspec():
    address = endpoint.removeprefix("http://")
    options = {"access_key": key_id, "secret_key": secret, "region": "eu-north-1"}
    fs = ArrowFSWrapper(pyarrow.fs.S3FileSystem(endpoint_override=address, scheme="http", **options))
    whole = {}
    for name in fs.find(f"models/{prefix}"):
        with fs.open(name) as file:
            first = file.read(1)
            whole[name.removeprefix("models/")] = sha256(first + file.read())
    return whole


print(json.dumps({"boto3": with_boto3(), "fsspec": with_fsspec()}))
