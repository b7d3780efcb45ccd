#!/usr/bin/perl
# The signatures of webhooks, the table of qhook and what it makes of a request: lib/sign.c and lib/hook.c, by t/unit-hook.
# Published vectors name their source; the others are made here by Digest::SHA, which shares no code with libcrypto.
use strict;
use warnings;
use Cwd qw(abs_path);
use Digest::SHA qw(hmac_sha1 hmac_sha256 hmac_sha512 hmac_sha1_hex hmac_sha256_hex hmac_sha512_hex sha256_hex);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use MIME::Base64 qw(encode_base64 decode_base64);
use Test::More;

my $top = abs_path(dirname($0) . '/..');
my $unit = "$top/t/unit-hook";
plan skip_all => 't/unit-hook is not built' if !-x $unit;
my $dir = tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1);
delete @ENV{grep { /^Q_/ } keys %ENV};
$ENV{TZ} = 'UTC';
umask 022;
chdir $dir or die "$dir: $!";
END { my $status = $?; chdir '/'; $? = $status }

sub spew { my ($file, $text, $mode) = @_; unlink $file; open my $f, '>', $file or die "$file: $!"; print $f $text; close $f; chmod $mode // 0600, $file }
sub b64 { encode_base64($_[0], '') }
sub coded { my ($s) = @_; return '(none)' if !defined $s; $s =~ s/([^!-\$&-~])/sprintf '%%%02x', ord $1/ge; $s }
sub line { join("\t", map { coded($_) } @_) . "\n" }

# What the driver says to each line of fields.
sub driver {
	spew('in', join '', map { line(@$_) } @_);
	my @out = split /\n/, `$unit <in`, -1;
	is($?, 0, 'the driver ends well') if $?;
	pop @out;
	return @out;
}

# [NAME, WANT, FIELDS...]...; WANT may be a pattern
sub table_of {
	my @rows = @_;
	my @got = driver(map { [@$_[2 .. $#$_]] } @rows);
	for my $i (0 .. $#rows) {
		my ($name, $want) = @{$rows[$i]};
		ref $want ? like($got[$i] // '', $want, $name) : is($got[$i], $want, $name);
	}
}

# ---- published vectors -------------------------------------------------------------------------------

my $NO = 'no: no secret of this line made the signature';
my $FORM = 'no: there is no signature in the form of this scheme';
my $ABSENT = 'no: the signature is absent';
my @rows;
sub vector {	# NAME SCHEME SECRET SIGNATURE ID TS URL BODY: it passes, and much beside it does not
	my ($name, $scheme, $secret, $sig, $id, $ts, $url, $body) = @_;
	my $v = sub { my ($n, $want, %o) = @_;
		push @rows, ["$name: $n", $want, 'sign', $scheme, $o{secret} // $secret, exists $o{sig} ? $o{sig} : $sig, exists $o{id} ? $o{id} : $id,
		    exists $o{ts} ? $o{ts} : $ts, exists $o{url} ? $o{url} : $url, $o{body} // $body] };
	my $whsec = $scheme =~ /standard|svix|signed/;
	my $public = $scheme eq 'discord';
	$v->('passes', 0);
	if ($whsec || $public) {
		my $other = $secret;
		substr($other, 10, 4) = 'AAAA' if $whsec;
		$other =~ tr/0123/1230/ if $public;
		$v->('another secret', $NO, secret => $other);
	} else {
		$v->('another secret', $NO, secret => $secret . 'x');
		$v->('another secret, shorter', $NO, secret => substr($secret, 0, -1));
	}
	$v->('another secret and then this', 1, secret => ($whsec ? 'whsec_' . b64('0' x 24) : $public ? '00' x 32 : 'other') . "|$secret");
	if ($body ne '') {
		$v->('the body with a byte more', $NO, body => "$body ");
		$v->('... with a line end more', $NO, body => "$body\n");
		$v->('... with a byte less', $NO, body => substr($body, 0, -1));
		my $flip = $body;
		substr($flip, length($flip) / 2, 1) ^= "\x01";
		$v->('... with a bit less', $NO, body => $flip);
	}
	$v->('no signature', $ABSENT, sig => undef);
	$v->('an empty one', $FORM, sig => '');
	$v->('a blank one', $FORM, sig => ' ');
	$v->('cut by a digit', $FORM, sig => substr($sig, 0, -1)) if $sig !~ /v0=63/;
	$v->('cut by half', $FORM, sig => substr($sig, 0, length($sig) / 2)) if $scheme ne 'stripe' && $scheme ne 'paddle';
	$v->('a digit more', $FORM, sig => $sig . 'a') if $sig !~ /v0=63/;
	$v->('a blank before', $FORM, sig => " $sig") if !$whsec && $scheme !~ /stripe|paddle/;
	$v->('a blank behind', $FORM, sig => "$sig ") if !$whsec && $scheme !~ /stripe/;
	my ($digits) = $sig =~ m{([0-9A-Za-z+/]{27,}=*)(?:,v0=.*)?$};
	for my $at (0, int(length($digits) / 2), length($digits) - 3) {
		my $bad = $digits;
		substr($bad, $at, 1) = substr($bad, $at, 1) eq '7' ? '8' : '7';
		(my $other = $sig) =~ s/\Q$digits\E/$bad/;
		$v->("digit $at is another", $NO, sig => $other);
	}
	if ($digits =~ /=$/) {	# the last digit has bits that are not used
		(my $stray = $sig) =~ s/(.)(=+)$/chr(ord($1) + 1) . $2/e;
		$v->('bits left over', $FORM, sig => $stray);
	}
	(my $upper = $sig) =~ s/\Q$digits\E/uc $digits/e;
	$v->('its digits in the other case', $scheme =~ /shopify|standard|svix|signed|twilio|square|zendesk/ ? qr/^no:/ : 0, sig => $upper);
	(my $zero = $sig) =~ s/\Q$digits\E/$digits =~ m{[G-Zg-z+\/=]} ? b64("\0" x length(decode_base64($digits))) : '0' x length $digits/e;
	$v->('nothing but zeros', $NO, sig => $zero);
	if (defined $ts && $ts ne '') {
		(my $later = $ts) =~ s/(\d)(\D*)$/($1 + 1) % 10 . $2/e;
		$v->('another time', $NO, ts => $later) if $later ne $ts;
		$v->('no time', 'no: the time of signing is absent', ts => undef);
	}
	if (defined $id) {
		$v->('another id', $NO, id => $id . 'x');
		$v->('no id', 'no: the id that is signed is absent', id => undef);
	}
	if (defined $url) {
		$v->('another URL', $NO, url => "$url/");
		$v->('no URL', 'no: no URL', url => undef);
	}
}

# GitHub's documentation on validating deliveries.
my @github = ("It's a Secret to Everybody", 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17', undef, undef, undef, 'Hello, World!');
vector('github', 'github', @github);
push @rows, ["github: $_->[0]", $FORM, 'sign', 'github', $github[0], $_->[1], undef, undef, undef, $github[5]] for
    ['no prefix', substr($github[1], 7)], ['sha1=', 'sha1=' . substr($github[1], 7)], ['SHA256=', 'SHA' . substr($github[1], 3)],
    ['twice', "$github[1],$github[1]"], ['the SHA-1 of it', 'sha1=' . hmac_sha1_hex($github[5], $github[0])], ['sha256= and no more', 'sha256='];

# Slack's documentation on verifying requests.
my $SLACK = 'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&' .
    'user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2F' .
    'T1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c';
vector('slack', 'slack', '8f742231b10e8888abcd99yyyzzz85a5', 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    undef, '1531420618', undef, $SLACK);
push @rows, ['slack: v1=', $FORM, 'sign', 'slack', '8f742231b10e8888abcd99yyyzzz85a5',
    'v1=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503', undef, '1531420618', undef, $SLACK];

# The vector of all reference libraries of Standard Webhooks.
my ($WHSEC, $GOOD) = ('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
my @standard = ('msg_p5jXN8AQM9LWM0D4loKWxJek', '1614265330', undef, '{"test": 2432232314}');
vector($_, $_, $WHSEC, $GOOD, @standard) for 'standard', 'svix', 'gitlab-signed';
my $DECOY = 'v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=';
(my $v2 = $DECOY) =~ s/v1/v2/;
(my $good2 = $GOOD) =~ s/v1/v2/;
(my $good1a = $GOOD) =~ s/v1/v1a/;
push @rows, map { ["standard: $_->[0]", $_->[1], 'sign', 'standard', $_->[3] // $WHSEC, $_->[2], @standard] }
    ['a digit is another', $NO, 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OA='], ['v1, and no more', $FORM, 'v1,'],
    ['a list with decoys', 0, "$DECOY $v2 $GOOD $DECOY"], ['decoys alone', $NO, "$DECOY $v2 $DECOY"], ['v2 alone', $FORM, $good2],
    ['v1a of an HMAC', $FORM, $good1a], ['no version', $FORM, substr($GOOD, 3)], ['no padding', $FORM, substr($GOOD, 0, -1)],
    ['two blanks between', 0, "$DECOY  $GOOD"], ['a comma between', $FORM, "$DECOY,$GOOD"],
    ['16 signatures', 0, join ' ', ($DECOY) x 15, $GOOD], ['17 signatures', 'no: there are more than 16 signatures', join ' ', $GOOD, ($DECOY) x 16],
    ['no whsec_', 0, $GOOD, substr($WHSEC, 6)], ['an empty secret', 'no: the secret is empty', $GOOD, 'whsec_'],
    ['v1, in the secret', 'no: the secret is not whsec_ and base64', $GOOD, "v1,$WHSEC"],
    ['a blank in the secret', 'no: the secret is not whsec_ and base64', $GOOD, 'whsec_MfKQ9r8GKYqrTwjU PD8ILPZIo2LaLaSw'],
    ['the secret as it stands', $NO, 'v1,' . b64(hmac_sha256("$standard[0].$standard[1].$standard[3]", $WHSEC))];
# Unpadded keys, as the reference libraries read them.
push @rows, ["standard: the key $_->[0]", unpack('H*', decode_base64("$_->[0]==")), 'secret', 'standard', $_->[0]]
    for ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS'], ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBr'];
push @rows, ["standard: the key $_ is the padded one", unpack('H*', decode_base64("$_=")), 'secret', 'standard', "$_="] for 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS';
push @rows, ["standard: signed with the key $_", 0, 'sign', 'standard', "whsec_$_",
    'v1,' . b64(hmac_sha256("$standard[0].$standard[1].$standard[3]", decode_base64("$_=="))), @standard] for 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBr';

# stripe-dotnet and async-stripe.
my $STRIPE = <<'END';
{
  "id": "evt_123",
  "object": "event",
  "account": "acct_123",
  "api_version": "2017-05-25",
  "created": 1533204620,
  "data": {
    "object": {
      "id": "ii_123",
      "object": "invoiceitem",
      "amount": 1000,
      "currency": "usd",
      "customer": "cus_123",
      "date": 1533204620,
      "description": "Test Invoice Item",
      "discountable": false,
      "invoice": "in_123",
      "livemode": false,
      "metadata": {},
      "period": {
        "start": 1533204620,
        "end": 1533204620
      },
      "plan": null,
      "proration": false,
      "quantity": null,
      "subscription": null
    }
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": {
    "id": "req_123",
    "idempotency_key": "idempotency-key-123"
  },
  "type": "invoiceitem.created"
}
END
is(sha256_hex($STRIPE), '00589da53d8c43f7cabd6f30ecd2db5f0e746c5b99507b4776e4493bf21c27cf', "stripe: the body's digest");
my ($v1, $v0) = ('v1=f0bdba6d4eacbd8ad8a3bbadd7248e633ec1477f7899c124c51b39405fa36613', 'v0=63f3a72374a733066c4be69ed7f8e5ac85c22c9f0a6a612ab9a025a9e4ee7eef');
vector('stripe', 'stripe', 'webhook_secret', "t=1533204620,$v1,$v0", undef, '1533204620', undef, $STRIPE);
(my $other1 = $v1) =~ s/f0bd/f0be/;
(my $v2s = $v1) =~ s/v1/v2/;
push @rows, map { ["stripe: $_->[0]", $_->[1], 'sign', 'stripe', 'webhook_secret', $_->[2], undef, '1533204620', undef, $STRIPE] }
    ['v0 alone', $FORM, "t=1533204620,$v0"], ['of two v1 the second', 0, "t=1533204620,$other1,$v1"], ['of two v1 the first', 0, "t=1533204620,$v1,$other1"],
    ['another v1', $NO, "t=1533204620,$other1"], ['v2', $FORM, "t=1533204620,$v2s"], ['blanks between', 0, "t=1533204620, $v1"],
    ['semicolons between', $FORM, "t=1533204620;$v1"], ['the time alone', $FORM, 't=1533204620'], ['V1', $FORM, 't=1533204620,V' . substr($v1, 1)],
    ['v1 of nothing', $FORM, 't=1533204620,v1='], ['17 of them', 'no: there are more than 16 signatures', join ',', $v1, ($other1) x 16];
push @rows, ['stripe: whsec_ is part of the key', unpack('H*', 'whsec_abc'), 'secret', 'stripe', 'whsec_abc'];

# Paddle's Python SDK.
my @paddle = ('pdl_ntf_01hbpjmytsa32fhr36nqgc3kgb_TjIG2BXbm83HPXqNfziwe506sBEdqL/4', 'pdl_ntf_01hbpjmytsa32fhr36nqgc3kgb_vB/yIOnTOCWIvpBadM5jzBZPHc7OmdSo',
    'pdl_ntf_01hbpjmytsa32fhr36nqgc3kgb_WvRO0eL4Bj9rgYYIBZY6wZhG4EHy9jzh');
my $h1 = 'h1=d96299976a6eb066f484d7fde011ac56fc32b38fc9940bc419d6e537fdc6ef02';
vector('paddle', 'paddle', $paddle[2], "ts=1696195954;h1=dummy;$h1", undef, '1696195954', undef, 'hello-world');
push @rows, map { ["paddle: $_->[0]", $_->[1], 'sign', 'paddle', $_->[2], $_->[3], undef, '1696195954', undef, 'hello-world'] }
    ['the third secret', 2, join('|', @paddle), "ts=1696195954;h1=dummy;$h1"], ['none of them', $NO, "$paddle[0]|$paddle[1]", "ts=1696195954;h1=dummy;$h1"],
    ['the first digest', 0, $paddle[2], "ts=1696195954;$h1;h1=dummy"], ['commas between', $FORM, $paddle[2], "ts=1696195954,$h1"];

# Twilio's SDKs.
my $TURL = 'https://mycompany.com/myapp.php?foo=1&bar=2';
my $TFORM = 'CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212';
vector('twilio', 'twilio', '12345', 'RSOYDt4T1cUTdK1PDd93/VVr8B8=', undef, undef, $TURL, $TFORM);
push @rows, map { ["twilio: $_->[0]", $_->[1], 'sign', 'twilio', '12345', $_->[2], undef, undef, $_->[3], $_->[4]] }
    ['fields in another order', 0, 'RSOYDt4T1cUTdK1PDd93/VVr8B8=', $TURL, join '&', reverse split /&/, $TFORM],
    ['repeated names', 0, 'IK+Dwps556ElfBT0I3Rgjkr1wJU=', $TURL, 'Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234&Digits=1234'],
    ['JSON', 0, 'a9nBmqA0ju/hNViExpshrM61xv4=', "$TURL&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620", ''],
    ['http with a port', 0, 'Zmvh+3yNM1Phv2jhDCwEM3q5ebU=', 'http://mycompany.com:1234/myapp.php?foo=1&bar=2', $TFORM],
    ['https with its port', 0, 'kvajT1Ptam85bY51eRf/AJRuM3w=', 'https://mycompany.com:443/myapp.php?foo=1&bar=2', $TFORM],
    ['a value less', $NO, 'RSOYDt4T1cUTdK1PDd93/VVr8B8=', $TURL, 'CallSid=CA1234567890ABCDE'];
push @rows, ["twilio: a form with $_->[0]", 0, 'sign', 'twilio', '12345', b64(hmac_sha1("u$_->[2]", '12345')), undef, undef, 'u', $_->[1]]
    for ['a plus and a percent', 'b=1+2&a=%25%zz%2', 'a%%zz%2b1 2'], ['no value', 'a=&b&=c', 'cab'], ['empty fields', '&&a=1&&', 'a1'], ['a NUL', 'a=%00x', "a\0x"],
    ['names that begin alike', 'ab=1&a=2', 'a2ab1'], ['nothing', '', ''];

# Square's documentation.
vector('square', 'square', 'asdf1234', '2kRE5qRU2tR+tBGlDwMEw2avJ7QM4ikPYD/PJ3bd9Og=', undef, undef, 'https://example.com/webhook', '{"hello":"world"}');

# The tests of Convoy (Shopify, X and GitHub forms) and of adnanh/webhook (generic; Scalr's, whose time is a Date).
vector('shopify', 'shopify', 'Convoy', '16FUVH58NeMcTIIOICN2UJOcPTTa4TbjCndXymGrtM8=', undef, undef, undef, 'Test Payload Body');
vector('hmac', 'hmac', 'Convoy', 'd7a154547e7c35e31c4c820e20237650939c3d34dae136e30a7757ca61abb4cf', undef, undef, undef, 'Test Payload Body');
vector('hmac', 'hmac', 'secret', 'f417af3a21bd70379b5796d5f013915e7029f62c580fb0f500f59a35a6f04c89', undef, undef, undef, '{"a": "z"}');
vector('hmac of nothing', 'hmac', 'secret', 'f9e66e179b6747ae54108f82f8ade8b3c25d76fd30afde6c395822c530196169', undef, undef, undef, '');

# RFC 8032, test 3, in the shape of Discord: time and body are its two bytes.
my $PUBLIC = 'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025';
vector('discord', 'discord', $PUBLIC, '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
    undef, "\xaf", undef, "\x82");
push @rows, ["discord: the key $_->[0]", "no: is not a public key of 64 hex digits", 'secret', 'discord', $_->[1]] for
    ['a digit short', substr($PUBLIC, 1)], ['a byte short', substr($PUBLIC, 2)], ['a byte long', "${PUBLIC}00"], ['is no hex', 'z' x 64];

# Not published: the schemes are documented, the numbers are from Python's hmac and agree with Digest::SHA.
vector('zendesk', 'zendesk', 'dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ==', 'DM4vdWm3RFsaESVGQ1PGkJ2ES0CrXVJSpknXWR06Kss=', undef, '2026-07-14T12:00:00Z', undef,
    '{"ticket_id": 12345, "status": "open"}');
vector('linear', 'linear', 'SECRET', 'f1d521af72749eb4f92f201231d911c4c67e5b42319e6422c7cb25349335a544', undef, undef, undef,
    '{"action":"create","type":"Comment","webhookTimestamp":1677611643000}');
vector('mailgun', 'mailgun', 'key-test', '097ff1603ce0947833a030fe6b23a46d9597fc9835f074f252b2e662274fb61c', 'e0b5477167110d68991efc6b9f89f0a11066af27834600e123', '1770920772',
    undef, '');
vector('zoom', 'zoom', 'zoom-secret', 'v0=' . hmac_sha256_hex('v0:1770920772:{"event":"meeting.started"}', 'zoom-secret'), undef, '1770920772', undef, '{"event":"meeting.started"}');
vector('meta', 'meta', 'app-secret', 'sha256=' . hmac_sha256_hex('{"object":"page"}', 'app-secret'), undef, undef, undef, '{"object":"page"}');

# Standard Webhooks with a public key; made with openssl pkeyutl and the secret key of RFC 8032, test 3.
my @v1a = ('whpk_/FHNjmIYoaONpH7QAjDwWAgW7RO6MwOsXeuRFUiQgCU=', 'v1a,VfcV4xHdmviHlZXzo10G/89Rw6pa7jRJOriEa5GU+WpbslGWy1cu3RFgKKHAVPj4RJzh7Jzg1Nr36P+kMAdvDw==', 'msg_1', '1780401600', undef);
push @rows, ['standard: v1a', 0, 'sign', 'standard', @v1a, '{}'], ['... with v1 beside it', 0, 'sign', 'standard', $v1a[0], "$DECOY $v1a[1]", @v1a[2 .. 4], '{}'],
    ['... another body', $NO, 'sign', 'standard', @v1a, '{ }'], ['... as v1', $FORM, 'sign', 'standard', $v1a[0], 'v1,' . substr($v1a[1], 4), @v1a[2 .. 4], '{}'],
    ['... with both kinds of secrets', 1, 'sign', 'standard', "$WHSEC|$v1a[0]", @v1a[1 .. 4], '{}'],
    ['... the public key is no key of an HMAC', $NO, 'sign', 'standard', $v1a[0], 'v1,' . b64(hmac_sha256('msg_1.1780401600.{}', decode_base64('/FHNjmIYoaONpH7QAjDwWAgW7RO6MwOsXeuRFUiQgCU='))),
    @v1a[2 .. 4], '{}'], ['... cut', 'no: is not whpk_ and the base64 of 32 bytes', 'secret', 'standard', 'whpk_/FHNjmIYoaONpH7QAjDwWAgW7RO6MwOsXeuRFUiQ'];

push @rows, map { ["gitlab: $_->[0]", $_->[1], 'sign', 'gitlab', 'token-of-the-hook', $_->[2], undef, undef, undef, 'x'] }
    ['the token', 0, 'token-of-the-hook'], ['none', $ABSENT, undef], ['empty', 'no: the token is none of the secrets', ''],
    ['its beginning', 'no: the token is none of the secrets', 'token-of-the-hoo'], ['more than it', 'no: the token is none of the secrets', 'token-of-the-hooks'],
    ['in the other case', 'no: the token is none of the secrets', 'Token-of-the-hook'];

push @rows, map { ["secret of $_->[0]: $_->[1]", $_->[3], 'secret', $_->[0], $_->[2]] }
    ['stripe', 'empty', '', 'no: is empty'], ['stripe', 'a blank inside', 'whsec_a b', 'no: has a blank in it'], ['github', 'a blank inside', 'a b', '612062'],
    ['github', 'a blank before', ' ab', 'no: begins or ends with a blank'], ['github', 'a tab behind', "ab\t", 'no: begins or ends with a blank'],
    ['github', 'long', 'x' x 1025, 'no: is longer than 1024 bytes'], ['github', 'as long as it may be', 'x' x 1024, '78' x 1024], ['standard', 'empty', 'whsec_', 'no: is empty'],
    ['standard', 'padding in the middle', 'whsec_AA==AAAA', 'no: is not whsec_ and base64'], ['standard', 'a digit too many', 'whsec_AAAAA', 'no: is not whsec_ and base64'],
    ['standard', 'url-safe digits', 'whsec_AA-_', 'no: is not whsec_ and base64'], ['standard', 'padding alone', 'whsec_==', 'no: is not whsec_ and base64'];

push @rows, map { ["a time, $_->[0] $_->[1]", $_->[2], 'age', @$_[0, 1]] }
    [1, '1780401600', 1780401600000], [1, '178040160', 'no'], [1, '17804016000', 'no'], [1, 'hello', 'no'], [1, '', 'no'], [1, '+780401600', 'no'], [1, ' 780401600', 'no'],
    [1, '1780401600 ', 'no'], [1, '1.78040160', 'no'], [1, '-178040160', 'no'], [1, '0x6a1ebb80', 'no'], [2, '1780401600123', 1780401600123], [2, '1780401600', 'no'],
    [3, '2026-06-02T12:00:00Z', 1780401600000], [3, '2026-06-02T14:00:00+02:00', 1780401600000], [3, '2026-06-02T12:00:00', 'no'], [3, '2026-06-02', 'no'], [3, '@1780401600', 'no'],
    [3, 'now', 'no'], [3, '1780401600', 'no'], [0, '1780401600', 'no'];
table_of(@rows);

# ---- the table ---------------------------------------------------------------------------------------

my $S = 'secret-of-16-bytes';
spew($_, "$S\n") for 's', 's2', 's3', 's4', 's5', 'sp=in';
spew('std', "$WHSEC\n");
spew('pub', "$PUBLIC\n");
spew('short', "123456789012345\n");
spew('empty', '');
spew('blank', "with a blank in the middle\n");
spew('ends', "ends-with-a-blank-or \n");
spew('two', "two\nlines-of-16-bytes\n");
spew('nul', "with\0a-nul-of-16-bytes\n");
spew('open', "$S\n", 0644);
spew('group', "$S\n", 0640);
spew('crlf', "$S\r\n");
spew('verify', "verify-token\n");
mkdir 'sub' or die;
spew('sub/inner', "inner-secret-of-16-bytes\n");
spew('hex', '000102030405060708090a0b0c0d0e0f');

my $p128 = '/' . 'p' x 127;
my @good = (
	['one line', "/gh github s queue=gh\n"], ['no line end', '/gh github s queue=gh'], ['comments and empty lines', "# a\n\n  # b\n\t\n/gh github s queue=gh # c\n"],
	['tabs', "/gh\tgithub\ts\tqueue=gh"], ['health', "/health health\n/gh github s queue=gh"], ['all that github can have',
	'/gh github s,s2,s3,s4 queue=gh id=json:/a~1b time=header:X type=form:f entity=query:q max=1 keep=A,B,c-d'],
	['dedup', '/gh github s queue=gh dedup=body'], ['tolerance', '/s stripe s queue=q tolerance=1m/30s'], ['tolerance of a signed id', '/s stripe s queue=q tolerance=0'],
	['tolerance of a body', '/z zoom s queue=q tolerance=0'], ['standard', '/s standard std queue=q'], ['a path of 128 bytes', "$p128 github s queue=q"], ['the root', '/ github s queue=q'],
	['a line end in the secret', '/gh github crlf queue=q'], ['a blank in the secret', '/gh github blank queue=q'], ['a secret in a folder', '/gh github sub/inner queue=q'],
	['a secret by its whole name', "/gh github $dir/s queue=q"], ['discord', '/d discord pub queue=q'], ['meta', '/m meta s queue=q verify=verify'], ['square', '/s square s queue=q url=https://a.example/s?x=1'],
	['twilio', '/t twilio s queue=q url=http://a.example:8080/t'], ['hmac', '/h hmac s queue=q sig=header:X'],
	['hmac with all axes', '/h hmac hex queue=q sig=header:X list=v1; enc=base64 alg=sha512 key=hex msg={url}{id}.{ts}.{body} ts=pair:t unit=ms id=header:I url=https://a.example'],
	['hmac with ed25519', '/h hmac pub queue=q sig=header:X alg=ed25519 key=hex'], ['hmac with a time in the body', '/h hmac s queue=q sig=header:X ts=json:/t unit=ms']);
my $i = 0;
for (@good) { spew("good$i", $_->[1]); $_ = ["good: $_->[0]", 'ok', 'table', 'good' . $i++]; }
spew('insecure', "/a insecure-none queue=q\n/b github s queue=q\n/c insecure-none queue=q id=json:/i\n");
spew('sub/t', "/a github inner queue=q\n");
table_of(@good, ['what takes anything is named', 'ok /a /c', 'table', 'insecure'], ['a secret beside the table', 'ok', 'table', 'sub/t']);

my $LINE = 'a line is PATH SCHEME SECRETFILE queue=QUEUE';
my @bad = (
	['', "no hook in it: $LINE", 0], ["# nothing\n", "no hook in it: $LINE", 0], ["/health health\n", "no hook in it: $LINE", 0],
	["/a github s queue=q\0\n", 'a NUL in it: not a text', 0],
	["/a github s queue=q\r\n", 'a carriage return: the file has the line ends of another system'], ["/a github s queue=q \x01", 'a control byte'],
	["/a github s queue=q \x7f", 'a control byte'], ["/a github s queue=\xff", 'not UTF-8'],
	['a github s queue=q', 'a: a path begins with /'], ['/a?b github s queue=q', '/a?b: a path has no query'], ['/a//b github s queue=q', '/a//b: proxies rewrite // /./ and /../'],
	['/a/../b github s queue=q', '/a/../b: proxies rewrite // /./ and /../'], ['/a/./b github s queue=q', '/a/./b: proxies rewrite // /./ and /../'],
	['/a%2fb github s queue=q', '/a%2fb: a byte that a path here cannot have'], ["/\xc3\xa4 github s queue=q", "/\xc3\xa4: a byte that a path here cannot have"],
	['/a"b github s queue=q', '/a"b: a byte that a path here cannot have'],
	["${p128}p github s queue=q", '/' . 'p' x 39 . '...: the path is longer than 128 bytes'],
	['/a', "/a: no scheme: $LINE"], ['/a github', "/a: no secret file: $LINE"], ['/a github queue=q', "/a: no secret file: $LINE"],
	['/a githb s queue=q', 'githb: unknown scheme; did you mean "github"?'], ['/a GitHub s queue=q', 'GitHub: unknown scheme; did you mean "github"?'], ['/a paypal s queue=q', 'paypal: unknown scheme'],
	['/a none queue=q', 'none: unknown scheme'], ['/a helth', 'helth: unknown scheme; did you mean "health"?'], ['/a health queue=q', 'queue=q: nothing follows health'],
	['/a github s', 'queue: missing: where do its events go? write queue=QUEUE'], ['/a github s queue', 'queue: not KEY=VALUE'], ['/a github s queue=', 'queue: is empty'],
	['/a github s queue=a b', 'b: not KEY=VALUE'], ['/a github s queue=q queue=q', 'queue: given twice'], ['/a github s queue=.q', 'queue: .q is no name of a queue'],
	['/a github s queue=123', 'queue: 123 is no name of a queue'], ['/a github s quue=q', 'quue: unknown key; did you mean "queue"?'], ['/a github s queue=q colour=red', 'colour: unknown key'],
	['/a github s queue=q id=X-Id', 'id: X-Id is no place: write header:NAME, json:/POINTER, form:FIELD or query:NAME'], ['/a github s queue=q id=header:', 'id: header: is not the name of a header'],
	['/a github s queue=q type=header:a:b', 'type: header:a:b is not the name of a header'], ['/a github s queue=q time=json:a', 'time: json:a is not a JSON pointer, as in json:/data/id'],
	['/a github s queue=q time=json:', 'time: json: is not a JSON pointer, as in json:/data/id'], ['/a github s queue=q entity=json:/a~2', 'entity: json:/a~2 is not a JSON pointer, as in json:/data/id'],
	['/a github s queue=q entity=form:', 'entity: form: names no field'], ['/a github s queue=q entity=query:', 'entity: query: names no field'], ['/a github s queue=q id=pair:t', qr/id: pair:t is no place/],
	['/a standard std queue=q id=json:/id', 'id: standard signs the id at header:webhook-id, and it is taken'], ['/a mailgun s queue=q dedup=body', 'dedup: mailgun signs the id at json:/signature/token, and it is taken'],
	['/a github s queue=q dedup=id', 'dedup: id: only body'], ['/a github s queue=q dedup=body id=json:/i', 'dedup: goes without id'],
	['/a github s queue=q tolerance=5m', 'tolerance: github signs no time'], ['/a stripe s queue=q tolerance=5', qr/tolerance: 5: .*/], ['/a stripe s queue=q tolerance=5m/x', qr/tolerance: x: .*/],
	['/a stripe s queue=q tolerance=5m/0', 'tolerance: 0 stands alone, for no limit'], ['/a linear s queue=q tolerance=0', 'tolerance: 0, but the id at header:Linear-Delivery is not signed: add dedup=body'],
	['/a zendesk s queue=q tolerance=0', qr/tolerance: 0, but the id at header:X-Zendesk-Webhook-Invocation-Id is not signed/],
	['/a github s queue=q max=0', 'max: 0: bytes, from 1 to 26214400'], ['/a github s queue=q max=2m', 'max: 2m: bytes, from 1 to 26214400'],
	['/a github s queue=q max=26214401', 'max: 26214401: bytes, from 1 to 26214400'],
	['/a square s queue=q', 'url: missing: square signs the URL: write it as the sender has it'], ['/a twilio s queue=q', 'url: missing: twilio signs the URL: write it as the sender has it'],
	['/a github s queue=q url=https://a.example/', 'url: github signs no URL'], ['/a square s queue=q url=a.example/x', 'url: a.example/x: not a whole URL, as the sender knows it'],
	['/a square s queue=q url=https:///x', 'url: https:///x: not a whole URL, as the sender knows it'], ['/a square s queue=q url=https://a.example/#x', 'url: https://a.example/#x: not a whole URL, as the sender knows it'],
	['/a twilio s queue=q url=https://a.example/?x=1', 'url: https://a.example/?x=1: without a query: that of the request is taken'],
	['/a github s queue=q keep=A,,B', 'keep: (empty): not the name of a header'], ['/a github s queue=q keep=A:B', 'keep: A:B: not the name of a header'], ['/a gitlab s queue=q keep=x-gitlab-token', 'keep: x-gitlab-token: it is the secret itself'],
	['/a github s queue=q keep=' . join(',', 1 .. 17), 'keep: more than 16 headers'],
	['/a github s queue=q verify=verify', 'verify: github asks for no token'], ['/a meta s queue=q', 'verify: missing: the file with the token that the sender asks for when the URL is registered'],
	['/a meta s queue=q verify=nothing', 'nothing: No such file or directory'], ['/a meta s queue=q verify=open', 'open can be read or written by others; next: chmod 600', 1, 77],
	['/a github s queue=q sig=header:X', 'sig: github knows it; only hmac is told'], ['/a stripe s queue=q alg=sha1', 'alg: stripe knows it; only hmac is told'],
	['/a hmac s queue=q', 'sig: missing: where is the signature? write sig=header:NAME'], ['/a hmac s queue=q sig=X', qr/sig: X is no place/],
	['/a hmac s queue=q sig=header:X prefix=a list=b', 'list: goes without prefix'], ['/a hmac s queue=q sig=header:X list=a,b', qr/list: a,b: write list=NAME/], ['/a hmac s queue=q sig=header:X list=;', qr/list: ;: write list=NAME/],
	['/a hmac s queue=q sig=header:X alg=md5', 'alg: md5: not one of sha1 sha256 sha512 ed25519'], ['/a hmac s queue=q sig=header:X enc=b64', 'enc: b64: not one of hex base64'],
	['/a hmac s queue=q sig=header:X key=text', 'key: text: not one of raw base64 hex'], ['/a hmac s queue=q sig=header:X alg=ed25519', 'alg: ed25519 needs key=hex or key=base64'],
	['/a hmac s queue=q sig=header:X msg={bdy}', 'msg: {bdy} has braces that are none of {id} {ts} {body} {url} {form}'], ['/a hmac s queue=q sig=header:X msg={body', 'msg: {body has braces that are none of {id} {ts} {body} {url} {form}'],
	['/a hmac s queue=q sig=header:X msg=body', 'msg: body signs nothing of the request'], ['/a hmac s queue=q sig=header:X msg={ts}.{body}', 'ts: missing, and msg has {ts}'],
	['/a hmac s queue=q sig=header:X ts=header:T', 'ts: header:T is not signed: msg has no {ts}'], ['/a hmac s queue=q sig=header:X ts=pair:t', qr/ts: pair:t is no place/], ['/a hmac s queue=q sig=header:X unit=s', 'unit: there is no ts'],
	['/a hmac s queue=q sig=header:X msg={ts}{body} ts=header:T unit=m', 'unit: m: not one of s ms rfc3339 none'], ['/a hmac s queue=q sig=header:X msg={id}{body}', 'id: missing, and msg has {id}'],
	['/a hmac s queue=q sig=header:X msg={url}{body}', 'url: missing, and msg has {url}'], ['/a hmac s queue=q sig=header:X key=hex', 's is not hex of at most 1024 bytes'], ['/a hmac blank queue=q sig=header:X key=base64', 'blank is not base64 of at most 1024 bytes'],
	['/a insecure-none s queue=q', 's: not KEY=VALUE: insecure-none has no secret'], ['/a github nothing queue=q', 'nothing: No such file or directory'], ['/a github sub queue=q', 'sub is not a regular file'],
	['/a github open queue=q', 'open can be read or written by others; next: chmod 600', 1, 77], ['/a github group queue=q', 'group can be read or written by others; next: chmod 600', 1, 77], ['/a github s,open queue=q', 'open can be read or written by others; next: chmod 600', 1, 77],
	['/a github empty queue=q', 'empty is empty'], ['/a github short queue=q', 'short is shorter than 16 bytes: it could be found by trying'], ['/a stripe blank queue=q', 'blank has a blank in it'], ['/a github ends queue=q', 'ends begins or ends with a blank'],
	['/a github two queue=q', 'two is not one line of printable ASCII'], ['/a github nul queue=q', 'nul is not one line of printable ASCII'], ['/a standard s queue=q', 's is not whsec_ and base64'], ['/a discord s queue=q', 's is not a public key of 64 hex digits'],
	['/a github s, queue=q', 'the name of a secret file is empty'], ['/a github s,s2,s queue=q', 's: named twice'], ['/a github s,s2,s3,s4,s5 queue=q', 'more than 4 secrets'],
	["/a github s queue=q\n/b github s queue=q\n/a stripe s queue=q", '/a: line 1 has this path already', 3], ["\n# x\n/a githb s queue=q\n", 'githb: unknown scheme; did you mean "github"?', 3],
	['/a github s ' . 'x ' x 70, 'more than 64 words'],
);
$i = 0;
for (@bad) {
	my ($text, $want, $line, $code) = @$_;
	$line //= 1;
	$code //= 78;
	spew("bad$i", $text);
	my $at = "$code bad$i:" . ($line ? "$line:" : '') . ' ';
	$text =~ s/[^ -~]/./g;
	$_ = ["bad: $text", ref $want ? qr/^\Q$at\E$want/ : $at . $want, 'table', "bad$i"];
	$i++;
}
cmp_ok(scalar @bad, '>=', 50, 'many bad lines');
table_of(@bad, ['no table', '66 nothing: No such file or directory', 'table', 'nothing'], ['a folder', '78 sub: is not a regular file', 'table', 'sub']);
unlike(join('', driver(map { [@$_[2 .. 3]] } @bad)), qr/\Q$S\E|with a blank in the middle/, 'no message tells a secret');
SKIP: {
	skip 'root reads everything', 1 if $> == 0;
	spew('closed', "/a github s queue=q\n", 0);
	table_of(['a table that may not be read', '77 closed: Permission denied', 'table', 'closed']);
}

# ---- the head ----------------------------------------------------------------------------------------

my $NOW = 1780401600000;
my $TS = 1780401600;
spew('hooks', <<'END');
/health health
/gh github s,s2 queue=gh keep=X-Extra,User-Agent
/stripe stripe s queue=money entity=json:/data/object/customer
/slack slack s queue=slack
/shop shopify s queue=shop
/std standard std queue=std
/gl gitlab s queue=gl
/gls gitlab-signed std queue=gl
/zoom zoom s2,s queue=zoom
/square square s queue=sq url=https://a.example/square?x=1
/paddle paddle s queue=pa
/linear linear s queue=li
/zd zendesk s queue=zd
/mg mailgun s queue=mg
/meta meta s queue=me verify=verify max=1000
/discord discord pub queue=di
/tw twilio s queue=tw url=https://a.example/tw id=form:Sid
/h hmac s queue=h sig=header:X-Sig list=v1 msg={ts}+{body}+{id} ts=pair:t id=query:i type=form:t
/scalr hmac s queue=h sig=header:X-Signature alg=sha1 msg={body}{ts} ts=header:Date unit=none
/x hmac s queue=h sig=header:X-Sig prefix=sha512= alg=sha512
/none insecure-none queue=n id=json:/id time=json:/at entity=json:/e type=json:/t
/body github s queue=gh dedup=body
/tol stripe s queue=q tolerance=1m/10s
/off stripe s queue=q tolerance=0
END
table_of(
	['head: a path that is not there', '404', 'head', 'hooks', 'POST', '/nothing'], ['... that only begins like one', '404', 'head', 'hooks', 'POST', '/g'],
	['... that goes on', '404', 'head', 'hooks', 'POST', '/gh/'], ['... in the other case', '404', 'head', 'hooks', 'POST', '/GH'], ['... with two slashes', '404', 'head', 'hooks', 'POST', '//gh'],
	['... escaped', '404', 'head', 'hooks', 'POST', '/%67h'], ['... of a proxy', '404', 'head', 'hooks', 'POST', 'http://a.example/gh'], ['... empty', '404', 'head', 'hooks', 'POST', ''],
	['head: good', '0 26214400', 'head', 'hooks', 'POST', '/gh'], ['... with a query', '0 26214400', 'head', 'hooks', 'POST', '/gh?a=/b'], ['... with a smaller limit', '0 1000', 'head', 'hooks', 'POST', '/meta'],
	['head: GET', '405 POST', 'head', 'hooks', 'GET', '/gh'], ['... HEAD', '405 POST', 'head', 'hooks', 'HEAD', '/gh'], ['... PUT', '405 POST', 'head', 'hooks', 'PUT', '/gh'], ['... post', '405 POST', 'head', 'hooks', 'post', '/gh'],
	['... where GET has a meaning', '0 1000', 'head', 'hooks', 'GET', '/meta?hub.mode=subscribe'], ['... and PUT has none', '405 GET, POST', 'head', 'hooks', 'PUT', '/meta'],
	['head: health', '200', 'head', 'hooks', 'GET', '/health'], ['... HEAD', '200', 'head', 'hooks', 'HEAD', '/health'], ['... with a query', '200', 'head', 'hooks', 'GET', '/health?x'], ['... POST', '405 GET, HEAD', 'head', 'hooks', 'POST', '/health'],
	['head: gzip', '415', 'head', 'hooks', 'POST', '/gh', 'content-encoding: gzip'], ['... identity', '0 26214400', 'head', 'hooks', 'POST', '/gh', 'Content-Encoding: Identity'],
	['... both', '415', 'head', 'hooks', 'POST', '/gh', 'Content-Encoding: identity', 'Content-Encoding: br'], ['... an empty one', '415', 'head', 'hooks', 'POST', '/gh', 'Content-Encoding: '],
);

# ---- requests ----------------------------------------------------------------------------------------

sub H { hmac_sha256_hex($_[0], $_[1] // $S) }
sub ask { ('again', 'hooks', $NOW, 'POST', @_) }
sub said {	# the verdict of an accepted event
	my ($status, %f) = @_;
	my @names = qw(queue path scheme secret source id key type entity);
	join ' ', $status, (map { defined $f{$_} ? "$_=" . coded($f{$_}) : () } @names), 'ms=' . ($f{ms} // -1) . ($f{no_id} ? ' no_id' : ''),
	    (defined $f{headers} && $f{headers} ne '' ? 'headers=' . coded($f{headers}) : ()), $f{again} // 'again=' . $status . ' same';
}
my $WHY = sub { my ($s, $w) = @_; "$s why=" . coded($w) };
my $BAD = $WHY->(401, 'no secret of this line made the signature');
my $NOSIG = $WHY->(401, 'the signature is absent');
my $OLD = $WHY->(401, 'it was signed too long ago');
my $FUTURE = $WHY->(401, 'it was signed in the future: is the clock right?');
my $TWICE = $WHY->(400, 'a header that counts is there twice, or has two lines');
my $NOTIME = $WHY->(401, 'the time of signing is absent or is none');
my $bh = sub { 'b:' . sha256_hex($_[0]) };

# github
my $gb = '{"zen":"\u00fc"}';
my $gs = 'X-Hub-Signature-256: sha256=' . H($gb);
my %gh = (queue => 'gh', path => '/gh', scheme => 'github', secret => 's', source => 'unsigned', id => 'ab-12', key => '/gh/ab-12', type => 'push');
table_of(
	['github', said(200, %gh, headers => substr($gs, 0) . "\nX-GitHub-Delivery: ab-12\nX-GitHub-Event: push\nContent-Type: application/json\nX-Extra: 1\n"),
	    ask('/gh', $gb, $gs, 'x-github-delivery: ab-12', 'X-GITHUB-EVENT:  push ', 'Content-Type: application/json', 'x-extra: 1', 'X-Other: 2')],
	['... no id', said(200, %gh, source => 'body', id => $bh->($gb), key => '/gh/' . $bh->($gb), no_id => 1, headers => "$gs\nX-GitHub-Event: push\n"), ask('/gh', $gb, $gs, 'X-GitHub-Event: push')],
	['... an empty id', said(200, %gh, source => 'body', id => $bh->($gb), key => '/gh/' . $bh->($gb), no_id => 1, headers => "$gs\nX-GitHub-Delivery: \nX-GitHub-Event: push\n"), ask('/gh', $gb, $gs, 'X-GitHub-Delivery:  ', 'X-GitHub-Event: push')],
	['... the second secret', said(200, %gh, secret => 's', headers => "$gs\nX-GitHub-Delivery: ab-12\nX-GitHub-Event: push\n"), ask('/gh', $gb, $gs, 'X-GitHub-Delivery: ab-12', 'X-GitHub-Event: push')],
	['... a type that is no name', said(200, %gh, type => undef, headers => "$gs\nX-GitHub-Delivery: ab-12\nX-GitHub-Event: a\x01\n"), ask('/gh', $gb, $gs, 'X-GitHub-Delivery: ab-12', "X-GitHub-Event: a\x01")],
	['... an id that is no name', said(200, %gh, type => undef, id => 'i:' . sha256_hex("a\xff"), key => '/gh/i:' . sha256_hex("a\xff"), headers => "$gs\nX-GitHub-Delivery: a\xff\n"), ask('/gh', $gb, $gs, "X-GitHub-Delivery: a\xff")],
	['... a long id', said(200, %gh, type => undef, id => 'x' x 255, key => '/gh/i:' . sha256_hex('x' x 255), headers => "$gs\nX-GitHub-Delivery: " . 'x' x 255 . "\n"), ask('/gh', $gb, $gs, 'X-GitHub-Delivery: ' . 'x' x 255)],
	['... a key as long as it may be', said(200, %gh, type => undef, id => 'x' x 251, key => '/gh/' . 'x' x 251, headers => "$gs\nX-GitHub-Delivery: " . 'x' x 251 . "\n"), ask('/gh', $gb, $gs, 'X-GitHub-Delivery: ' . 'x' x 251)],
	['... an id that is too long', said(200, %gh, type => undef, id => 'i:' . sha256_hex('x' x 256), key => '/gh/i:' . sha256_hex('x' x 256), headers => "$gs\nX-GitHub-Delivery: " . 'x' x 256 . "\n"), ask('/gh', $gb, $gs, 'X-GitHub-Delivery: ' . 'x' x 256)],
	['... no signature', $NOSIG, ask('/gh', $gb)], ['... the old one', $NOSIG, ask('/gh', $gb, 'X-Hub-Signature: sha1=' . hmac_sha1_hex($gb, $S))],
	['... two signatures', $TWICE, ask('/gh', $gb, $gs, $gs)], ['... two ids', $TWICE, ask('/gh', $gb, $gs, 'X-GitHub-Delivery: a', 'x-github-delivery: b')], ['... two of what is kept', $TWICE, ask('/gh', $gb, $gs, 'X-Extra: a', 'X-Extra: a')],
	['... two of what is not', qr/^200 /, ask('/gh', $gb, $gs, 'Accept: a', 'Accept: b')], ['... two types of content', $TWICE, ask('/gh', $gb, $gs, 'Content-Type: a', 'Content-Type: b')],
	['... a line end in a header', $TWICE, ask('/gh', $gb, $gs, "X-Extra: a\nX-Forged: b")],
	['... another body', $BAD, ask('/gh', "$gb ", $gs)], ['... a form', qr/^200 .* type=push/, ask('/gh', 'payload=%7B%7D', 'X-Hub-Signature-256: sha256=' . H('payload=%7B%7D'), 'X-GitHub-Event: push')],
	['... the digest of the body as id', said(200, %gh, path => '/body', type => undef, source => 'body', id => $bh->($gb), key => '/body/' . $bh->($gb), headers => "$gs\nX-GitHub-Delivery: a\n"), ask('/body', $gb, $gs, 'X-GitHub-Delivery: a')],
	['... an empty body', qr/^200 .* id=b:e3b0c44298fc/, ask('/gh', '', 'X-Hub-Signature-256: sha256=' . H(''))],
);

# stripe: the age, from both sides
my $sb = '{"id":"evt_1","created":1780401500,"type":"charge.failed","data":{"object":{"customer":"cus_1"}}}';
sub stripe { my ($ts, $body) = @_; $body //= $sb; "Stripe-Signature: t=$ts,v1=" . H("$ts.$body") }
my %st = (queue => 'money', path => '/stripe', scheme => 'stripe', secret => 's', source => 'signed', id => 'evt_1', key => '/stripe/evt_1', type => 'charge.failed', entity => 'cus_1', ms => 1780401500000);
table_of(
	['stripe', said(200, %st, headers => stripe($TS) . "\n"), ask('/stripe', $sb, stripe($TS))],
	(map { ["... of $_->[0] s", $_->[1] ? said(200, %st, headers => stripe($TS + $_->[0]) . "\n") : $_->[0] < 0 ? $OLD : $FUTURE, ask('/stripe', $sb, stripe($TS + $_->[0]))] } [-300, 1], [-301, 0], [300, 1], [301, 0]),
	(map { ["tolerance=1m/10s: $_->[0] s", $_->[1] ? qr/^200 / : $_->[0] < 0 ? $OLD : $FUTURE, ask('/tol', $sb, stripe($TS + $_->[0]))] } [-60, 1], [-61, 0], [10, 1], [11, 0]),
	(map { ["tolerance=0: $_ s", qr/^200 /, ask('/off', $sb, stripe($TS + $_))] } -100000000, 100000000),
	['... old and wrong is wrong', $BAD, ask('/stripe', $sb, "Stripe-Signature: t=" . ($TS - 400) . ",v1=" . H('x'))],
	['... no time', $WHY->(401, 'the time of signing is absent'), ask('/stripe', $sb, 'Stripe-Signature: v1=' . H("$TS.$sb"))],
	['... two times', $WHY->(401, 'the time of signing is absent'), ask('/stripe', $sb, "Stripe-Signature: t=$TS,t=$TS,v1=" . H("$TS.$sb"))],
	['... a time that is none', $NOTIME, ask('/stripe', $sb, stripe('hello'))], ['... also with no limit', $NOTIME, ask('/off', $sb, stripe('hello'))], ['... a time of nine digits', $NOTIME, ask('/off', '4' . $sb, 'Stripe-Signature: t=178040160,v1=' . H("178040160.4$sb"))],
	['... not JSON', said(200, %st, source => 'body', type => undef, entity => undef, ms => -1, no_id => 1, id => $bh->('{'), key => '/stripe/' . $bh->('{'), headers => stripe($TS, '{') . "\n"), ask('/stripe', '{', stripe($TS, '{'))],
	(map { ["... an id that is $_->[0]", qr/^200 .* source=$_->[2] id=\Q$_->[3]\E/, ask('/stripe', $_->[1], stripe($TS, $_->[1]))] }
	    ['a number', '{"id":12345678901234567890}', 'signed', '12345678901234567890'], ['null', '{"id":null}', 'body', 'b:'], ['an object', '{"id":{}}', 'body', 'b:'], ['empty', '{"id":""}', 'body', 'b:'],
	    ['there twice', '{"id":"a","id":"b"}', 'signed', 'b '], ['with a NUL', '{"id":"a\u0000b"}', 'body', 'b:'], ['with a line end', '{"id":"a\nb"}', 'signed', 'i:'], ['deep', '[' x 300, 'body', 'b:']),
);

# the time of an event
my @times = (['1780401500', 1780401500000], ['1780401500.123456', 1780401500123], ['1780401500123', 1780401500123], ['1780401500123456', 1780401500123], ['"2026-06-02T11:58:20.5Z"', 1780401500500],
    ['"2026-06-02T13:58:20.041743999+02:00"', 1780401500041], ['"1780401500"', 1780401500000], ['"2026-06-02T11:58:20"', -1], ['"yesterday"', -1], ['-5', -1], ['0', -1], ['1e9', -1], ['true', -1], ['""', -1], ['"2026-13-02T11:58:20Z"', -1],
    ['99999999999999999', -1], ['"1780401500."', 1780401500000], ['"1780401500.x"', -1], ['"now"', -1], ['"+5m"', -1], ['"@1780401500"', -1]);
table_of(
	(map { ["event time $_->[0]", qr/^200 .* ms=$_->[1] /, ask('/none', "{\"at\":$_->[0]}")] } @times),
	['insecure-none', said(200, queue => 'n', path => '/none', scheme => 'insecure-none', source => 'unsigned', id => '7', key => '/none/7', type => 't', entity => "\xc3\xa4", ms => 1780401500000), ask('/none', '{"id":7,"at":1780401500,"t":"t","e":"\u00e4"}')],
	['... an entity that is no name', qr/^200 (?!.*entity=)/, ask('/none', '{"id":7,"e":"a\tb"}')], ['... that is too long', qr/^200 (?!.*entity=)/, ask('/none', '{"id":7,"e":"' . 'x' x 256 . '"}')],
);

# slack
sub slack { my ($body, $ts) = @_; $ts //= $TS; ('X-Slack-Signature: v0=' . H("v0:$ts:$body"), "X-Slack-Request-Timestamp: $ts") }
my $slb = '{"type":"event_callback","event_id":"Ev1","event_time":1780401590,"event":{"type":"message"}}';
my $ch = '{"type":"url_verification","challenge":"3eZbrw1a\u00fc"}';
table_of(
	['slack', said(200, queue => 'slack', path => '/slack', scheme => 'slack', secret => 's', source => 'signed', id => 'Ev1', key => '/slack/Ev1', type => 'message', ms => 1780401590000, headers => join("\n", slack($slb)) . "\n"), ask('/slack', $slb, slack($slb))],
	['... a command', qr/^200 .* source=body id=b:[0-9a-f]{64} key=\S+ ms=-1 no_id /, ask('/slack', $SLACK, slack($SLACK), 'Content-Type: application/x-www-form-urlencoded')],
	['... url_verification', '200 answer=' . coded("3eZbrw1a\xc3\xbc") . ' answer_type=text/plain', ask('/slack', $ch, slack($ch))], ['... not signed', $BAD, ask('/slack', $ch, slack("$ch "))],
	['... without a signature', $NOSIG, ask('/slack', $ch)], ['... too old', $OLD, ask('/slack', $ch, slack($ch, $TS - 301))],
	['... without a challenge', $WHY->(400, 'a url_verification without a challenge'), ask('/slack', '{"type":"url_verification"}', slack('{"type":"url_verification"}'))],
	['... no time', $WHY->(401, 'the time of signing is absent'), ask('/slack', $slb, (slack($slb))[0])],
);

# the others
my $shb = '{"id":1}';
my @sh = ('X-Shopify-Hmac-SHA256: ' . b64(hmac_sha256($shb, $S)), 'X-Shopify-Webhook-Id: w-1', 'X-Shopify-Triggered-At: 2026-06-02T11:58:20.041743Z', 'X-Shopify-Topic: orders/paid');
my $k = decode_base64('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
sub standard { my ($id, $ts, $body, $name) = @_; ("$name-signature: v1," . b64(hmac_sha256("$id.$ts.$body", $k)), "$name-timestamp: $ts", "$name-id: $id") }
my $stb = '{"type":"user.created","timestamp":"2026-06-02T11:58:20Z","data":{}}';
my %std = (queue => 'std', path => '/std', scheme => 'standard', secret => 'std', source => 'signed', id => 'msg_1', key => '/std/msg_1', type => 'user.created', ms => 1780401500000);
my $zb = '{"event":"meeting.started","event_ts":1780401500123,"payload":{}}';
sub zoom { my ($b) = @_; ('x-zm-signature: v0=' . H("v0:$TS:$b"), "x-zm-request-timestamp: $TS") }
my $zv = '{"payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"},"event_ts":1654503849680,"event":"endpoint.url_validation"}';
my $sqb = '{"event_id":"e1","type":"payment.updated","created_at":"2026-06-02T11:58:20Z"}';
my $sqs = 'x-square-hmacsha256-signature: ' . b64(hmac_sha256("https://a.example/square?x=1$sqb", $S));
my $pb = '{"event_id":"evt_2","event_type":"t.c","occurred_at":"2026-06-02T11:58:20.123456Z"}';
my $ps = "Paddle-Signature: ts=$TS;h1=" . H("$TS:$pb");
sub linear { my ($ms) = @_; my $b = "{\"type\":\"Issue\",\"createdAt\":\"2026-06-02T11:58:20.000Z\",\"webhookTimestamp\":$ms}"; ($b, 'Linear-Signature: ' . H($b), 'Linear-Delivery: d-1') }
my $zdb = '{"type":"zen:event-type:x","time":"2026-06-02T11:58:20Z"}';
sub zendesk { my ($ts) = @_; ('X-Zendesk-Webhook-Signature: ' . b64(hmac_sha256("$ts$zdb", $S)), "X-Zendesk-Webhook-Signature-Timestamp: $ts", 'X-Zendesk-Webhook-Invocation-Id: 01H') }
sub mailgun { my ($ts, $token, $sig, $event) = @_; '{"signature":{"timestamp":"' . $ts . '","token":"' . $token . '","signature":"' . ($sig // H("$ts$token")) . '"},"event-data":{"event":"' . ($event // 'opened') . '","timestamp":1780401500.873676}}' }
my $meb = '{"object":"page","entry":[{"id":"1","time":1780401500123}]}';
table_of(
	['shopify', said(200, queue => 'shop', path => '/shop', scheme => 'shopify', secret => 's', source => 'unsigned', id => 'w-1', key => '/shop/w-1', type => 'orders/paid', ms => 1780401500041, headers => join("\n", @sh) . "\n"), ask('/shop', $shb, @sh)],
	['... in hex', $WHY->(401, 'there is no signature in the form of this scheme'), ask('/shop', $shb, 'X-Shopify-Hmac-SHA256: ' . H($shb))],
	['standard', said(200, %std, headers => join("\n", standard('msg_1', $TS, $stb, 'webhook')) . "\n"), ask('/std', $stb, standard('msg_1', $TS, $stb, 'webhook'))],
	['... with the names of Svix', said(200, %std, headers => join("\n", standard('msg_1', $TS, $stb, 'svix')) . "\n"), ask('/std', $stb, standard('msg_1', $TS, $stb, 'svix'))],
	['... with one of each', $WHY->(401, 'the id that is signed is absent'), ask('/std', $stb, (standard('msg_1', $TS, $stb, 'svix'))[0, 1], (standard('msg_1', $TS, $stb, 'webhook'))[2])],
	['... both, and the first is wrong', $BAD, ask('/std', $stb, standard('msg_1', $TS, "$stb ", 'webhook'), standard('msg_1', $TS, $stb, 'svix'))],
	['... another id', $BAD, ask('/std', $stb, (standard('msg_1', $TS, $stb, 'webhook'))[0, 1], 'webhook-id: msg_2')], ['... no id', $WHY->(401, 'the id that is signed is absent'), ask('/std', $stb, (standard('msg_1', $TS, $stb, 'webhook'))[0, 1])],
	['... an id with a dot', $WHY->(401, 'the id has a dot in it, so where it ends is not signed'), ask('/std', $stb, standard('msg.1', $TS, $stb, 'webhook'))],
	['... old', $OLD, ask('/std', $stb, standard('msg_1', $TS - 301, $stb, 'webhook'))], ['... in the future', $FUTURE, ask('/std', $stb, standard('msg_1', $TS + 301, $stb, 'webhook'))], ['... a time that is none', $NOTIME, ask('/std', $stb, standard('msg_1', 'hello', $stb, 'webhook'))],
	['gitlab', said(200, queue => 'gl', path => '/gl', scheme => 'gitlab', secret => 's', source => 'unsigned', id => 'u-1', key => '/gl/u-1', type => 'Push Hook', headers => "Idempotency-Key: u-1\nX-Gitlab-Event: Push Hook\n",
	    again => 'again=401 the token is not kept, since it is the secret: only the sender could show it again'), ask('/gl', '{}', "X-Gitlab-Token: $S", 'Idempotency-Key: u-1', 'X-Gitlab-Event: Push Hook')],
	['... two tokens', $TWICE, ask('/gl', '{}', "X-Gitlab-Token: $S", "X-Gitlab-Token: $S")],
	['... another token', $WHY->(401, 'the token is none of the secrets'), ask('/gl', '{}', "X-Gitlab-Token: x$S")], ['... none', $NOSIG, ask('/gl', '{}')],
	['gitlab-signed', qr/^200 queue=gl path=\/gls scheme=gitlab-signed secret=std source=signed id=msg_1 key=\/gls\/msg_1 type=Push%20Hook ms=-1 .* again=200 same$/, ask('/gls', $stb, standard('msg_1', $TS, $stb, 'webhook'), 'X-Gitlab-Event: Push Hook')],
	['... has not the names of Svix', $NOSIG, ask('/gls', $stb, standard('msg_1', $TS, $stb, 'svix'))],
	['zoom', said(200, queue => 'zoom', path => '/zoom', scheme => 'zoom', secret => 's2', source => 'body', id => $bh->($zb), key => '/zoom/' . $bh->($zb), type => 'meeting.started', ms => 1780401500123, headers => join("\n", zoom($zb)) . "\n"), ask('/zoom', $zb, zoom($zb))],
	['... url_validation', '200 answer=' . coded('{"plainToken":"qgg8vlvZRS6UYooatFL8Aw","encryptedToken":"' . H('qgg8vlvZRS6UYooatFL8Aw') . '"}') . ' answer_type=application/json', ask('/zoom', $zv, zoom($zv))],
	['... not signed', $BAD, ask('/zoom', $zv, zoom("$zv "))], ['... without a token', $WHY->(400, 'an endpoint.url_validation without a plainToken'), ask('/zoom', '{"event":"endpoint.url_validation"}', zoom('{"event":"endpoint.url_validation"}'))],
	['square', said(200, queue => 'sq', path => '/square', scheme => 'square', secret => 's', source => 'signed', id => 'e1', key => '/square/e1', type => 'payment.updated', ms => 1780401500000, headers => "$sqs\n"), ask('/square', $sqb, $sqs)],
	['... the query of the request is not signed', qr/^200 /, ask('/square?y=2', $sqb, $sqs)], ['... so a byte cannot move there', $BAD, ask('/square?x=1{', substr($sqb, 1), $sqs)],
	['paddle', said(200, queue => 'pa', path => '/paddle', scheme => 'paddle', secret => 's', source => 'signed', id => 'evt_2', key => '/paddle/evt_2', type => 't.c', ms => 1780401500123, headers => "$ps\n"), ask('/paddle', $pb, $ps)],
	['linear', said(200, queue => 'li', path => '/linear', scheme => 'linear', secret => 's', source => 'unsigned', id => 'd-1', key => '/linear/d-1', type => 'Issue', ms => 1780401500000, headers => join("\n", (linear($NOW))[1, 2]) . "\n"), ask('/linear', linear($NOW))],
	['... old', $OLD, ask('/linear', linear($NOW - 300001))], ['... in the future', $FUTURE, ask('/linear', linear($NOW + 300001))], ['... seconds', $NOTIME, ask('/linear', linear($TS))], ['... a time that is none', $NOTIME, ask('/linear', linear('null'))],
	['zendesk', said(200, queue => 'zd', path => '/zd', scheme => 'zendesk', secret => 's', source => 'unsigned', id => '01H', key => '/zd/01H', type => 'zen:event-type:x', ms => 1780401500000, headers => join("\n", zendesk('2026-06-02T12:04:59Z')) . "\n"), ask('/zd', $zdb, zendesk('2026-06-02T12:04:59Z'))],
	['... old', $OLD, ask('/zd', $zdb, zendesk('2026-06-02T11:54:59Z'))], ['... no zone', $NOTIME, ask('/zd', $zdb, zendesk('2026-06-02T12:00:00'))],
	['mailgun', said(200, queue => 'mg', path => '/mg', scheme => 'mailgun', secret => 's', source => 'signed', id => 'tok1', key => '/mg/tok1', type => 'opened', ms => 1780401500873), ask('/mg', mailgun($TS, 'tok1'))],
	['... wrong', $WHY->(406, 'no secret of this line made the signature'), ask('/mg', mailgun($TS, 'tok1', H('x')))], ['... no signature', $WHY->(406, 'the signature is absent'), ask('/mg', '{}')], ['... not JSON', $WHY->(406, 'the signature is absent'), ask('/mg', 'x')],
	['... too old is tried again', $OLD, ask('/mg', mailgun($TS - 301, 'tok1'))], ['... a digit of the time in the token', $WHY->(406, 'the time of signing is absent or is none'), ask('/mg', mailgun(substr($TS, 0, 9), substr($TS, 9) . 'tok1'))],
	['... the event is not signed: its token counts', qr/^200 .* id=tok1 key=\/mg\/tok1 type=bounced/, ask('/mg', mailgun($TS, 'tok1', undef, 'bounced'))],
	['meta', said(200, queue => 'me', path => '/meta', scheme => 'meta', secret => 's', source => 'body', id => $bh->($meb), key => '/meta/' . $bh->($meb), type => 'page', ms => 1780401500123, headers => 'X-Hub-Signature-256: sha256=' . H($meb) . "\n"), ask('/meta', $meb, 'X-Hub-Signature-256: sha256=' . H($meb))],
	(map { ["... GET $_->[0]", $_->[2], 'ask', 'hooks', $NOW, 'GET', "/meta$_->[1]", ''] }
	    ['', '?hub.mode=subscribe&hub.verify_token=verify-token&hub.challenge=1158201444', '200 answer=1158201444 answer_type=text/plain'], ['escaped', '?hub.challenge=a%2bb%20c&hub.mode=subscribe&hub.verify_token=verify%2Dtoken', '200 answer=a+b%20c answer_type=text/plain'],
	    ['with another token', '?hub.mode=subscribe&hub.verify_token=verify-tokem&hub.challenge=1', $WHY->(403, 'the verify token is absent or another')], ['with its beginning', '?hub.mode=subscribe&hub.verify_token=verify&hub.challenge=1', $WHY->(403, 'the verify token is absent or another')],
	    ['with none', '?hub.mode=subscribe&hub.challenge=1', $WHY->(403, 'the verify token is absent or another')], ['with nothing', '', $WHY->(403, 'the verify token is absent or another')], ['with the secret', "?hub.mode=subscribe&hub.verify_token=$S&hub.challenge=1", $WHY->(403, 'the verify token is absent or another')],
	    ['with another mode', '?hub.mode=x&hub.verify_token=verify-token&hub.challenge=1', $WHY->(400, 'no hub.mode=subscribe, or no hub.challenge')], ['without a challenge', '?hub.mode=subscribe&hub.verify_token=verify-token', $WHY->(400, 'no hub.mode=subscribe, or no hub.challenge')]),
);

# discord; signatures made with openssl pkeyutl and the secret key of RFC 8032, test 3
my @di = (['{"version":1,"application_id":"7","type":0}', 'e6c63c12b027feb39d94bb3dd2afbae894b34923759d1db50c2585bea3a6918a225bdcfb449bcf44dd6a950011fa8fb1413a71c21037dde9467eae7d6693c30a'],
    ['{"version":1,"application_id":"7","type":1,"event":{"type":"APPLICATION_AUTHORIZED","timestamp":"2026-06-02T11:59:58.123456+00:00","data":{}}}', '29ac6ffe2360fd04c87d76d7a20c9a4ff8cc896f0fe21f100e37a8ac573c9612782a639c1f995bfa04ca43a9f3068a3acde7345224fa0cc6fdb4e3c426acbd0d'],
    ['{"id":"9","application_id":"7","type":1,"token":"x","version":1}', '1f77f1c6b869593486a5404e15460090e2603f1f190ebd48c37e1f5ae7ed58b0c3fc7c47994459a4d32cca851c0537a02a9039097a03510bf7a67093193e4502']);
sub discord { my ($n, $ts) = @_; ($di[$n][0], "X-Signature-Ed25519: $di[$n][1]", 'X-Signature-Timestamp: ' . ($ts // $TS)) }
table_of(
	['discord: a ping', '204', ask('/discord', discord(0))], ['... not signed', $BAD, ask('/discord', (discord(0))[0], (discord(1))[1, 2])], ['... another time', $BAD, ask('/discord', discord(0, $TS + 1))], ['... no signature', $NOSIG, ask('/discord', (discord(0))[0])],
	['discord: an event', said(204, queue => 'di', path => '/discord', scheme => 'discord', secret => 'pub', source => 'body', id => $bh->($di[1][0]), key => '/discord/' . $bh->($di[1][0]), type => 'APPLICATION_AUTHORIZED', ms => 1780401598123,
	    headers => join("\n", (discord(1))[1, 2]) . "\n"), ask('/discord', discord(1))],
	['discord: a ping of interactions', '200 answer={"type":1} answer_type=application/json', ask('/discord', discord(2))],
);

# twilio
my $tf = 'Sid=SM1&Body=a+b%21&To=%2B1';
my $tfs = b64(hmac_sha1('https://a.example/tw?x=1BodyaSidSM1', $S));
sub twilio { my ($url, $text) = @_; 'X-Twilio-Signature: ' . b64(hmac_sha1($url . $text, $S)) }
my $FORMTYPE = 'Content-Type: application/x-www-form-urlencoded; charset=UTF-8';
my $tj = '{"a":1}';
my $tq = '?x=1&bodySHA256=' . sha256_hex($tj);
table_of(
	['twilio: a form', said(200, queue => 'tw', path => '/tw', scheme => 'twilio', secret => 's', source => 'signed', id => 'SM1', key => '/tw/SM1', headers => twilio('https://a.example/tw', 'Bodya b!SidSM1To+1') . "\n$FORMTYPE\n"),
	    ask('/tw', $tf, twilio('https://a.example/tw', 'Bodya b!SidSM1To+1'), $FORMTYPE)],
	['... with a query', qr/^200 .* again=200 same$/, ask('/tw?x=1', $tf, twilio('https://a.example/tw?x=1', 'Bodya b!SidSM1To+1'), $FORMTYPE)], ['... with another query', $BAD, ask('/tw?x=2', $tf, twilio('https://a.example/tw?x=1', 'Bodya b!SidSM1To+1'), $FORMTYPE)],
	['... as another type', $BAD, ask('/tw', $tf, twilio('https://a.example/tw', 'Bodya b!SidSM1To+1'), 'Content-Type: text/plain')],
	['twilio: JSON', qr/^200 .* source=body id=b:[0-9a-f]{64} .* no_id .* again=200 same$/, ask("/tw$tq", $tj, twilio("https://a.example/tw$tq", ''), 'Content-Type: application/json')],
	['... another body', $WHY->(401, 'the body is not the one that was signed'), ask("/tw$tq", "$tj ", twilio("https://a.example/tw$tq", ''), 'Content-Type: application/json')],
	['... without a body, as a form', $WHY->(401, 'the body is not the one that was signed'), ask("/tw$tq", '', twilio("https://a.example/tw$tq", ''), $FORMTYPE)],
	['... without a digest', $WHY->(401, 'the body is not signed: it is no form, and the URL has no bodySHA256'), ask('/tw', $tj, twilio('https://a.example/tw', ''), 'Content-Type: application/json')],
);

# hmac
my $hb = 't=some+type&u=1';
sub hm { my ($b, $id, $ts) = @_; "X-Sig: t=$ts, v0=00,v1=" . '0' x 64 . ',v1=' . H("$ts+$b+$id") }
my $scb = '{"a": "b"}';
my $DATE = 'Thu 07 Sep 2017 06:30:04 UTC';
table_of(
	['hmac with its axes', said(200, queue => 'h', path => '/h', scheme => 'hmac', secret => 's', source => 'signed', id => 'a b', key => '/h/a b', type => 'some type', headers => hm($hb, 'a b', $TS) . "\nContent-Type: application/x-www-form-urlencoded\n"),
	    ask('/h?i=a%20b&j=2', $hb, hm($hb, 'a b', $TS), 'Content-Type: application/x-www-form-urlencoded')],
	['... old', $OLD, ask('/h?i=a', $hb, hm($hb, 'a', $TS - 301))], ['... another id', $BAD, ask('/h?i=b', $hb, hm($hb, 'a', $TS))], ['... no id', $WHY->(401, 'the id that is signed is absent'), ask('/h', $hb, hm($hb, '', $TS))],
	['... a field of what is no form', qr/^200 (?!.* type=)/, ask('/h?i=a', $hb, hm($hb, 'a', $TS), 'Content-Type: application/json')],
	['hmac: sha512 with a prefix', qr/^200 queue=h path=\/x scheme=hmac secret=s source=body id=b:\S+ key=\S+ ms=-1 headers=/, ask('/x', 'x', 'X-Sig: sha512=' . hmac_sha512_hex('x', $S))],
	['... another algorithm', $WHY->(401, 'there is no signature in the form of this scheme'), ask('/x', 'x', 'X-Sig: sha512=' . H('x'))],
	['hmac: the form of Scalr', qr/^200 .* again=200 same$/, ask('/scalr', $scb, 'X-Signature: ' . hmac_sha1_hex("$scb$DATE", $S), "Date: $DATE")],
);
# Scalr's own vector (adnanh/webhook) and Adyen's key in hex (its documentation), by the axes of a line.
spew('scalr', "bilFGi4ZVZUdG+C6r0NIM9tuRq6PaG33R3eBUVhLwMAErGBaazvXe4Gq2DcJs5q+\n");
spew('adyen', "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056\n");
spew('v', "/scalr hmac scalr queue=h sig=header:X-Signature alg=sha1 msg={body}{ts} ts=header:Date unit=none\n/adyen hmac adyen queue=h sig=header:X key=hex enc=base64\n/gh github ghs queue=gh\n/std standard std queue=q\n");
spew('ghs', "It's a Secret to Everybody\n");
table_of(
	['Scalr', qr/^200 /, 'ask', 'v', $NOW, 'POST', '/scalr', $scb, 'X-Signature: 48e395e38ac48988929167df531eb2da00063a7d', "Date: $DATE"], ['... another date', $BAD, 'ask', 'v', $NOW, 'POST', '/scalr', $scb, 'X-Signature: 48e395e38ac48988929167df531eb2da00063a7d', "Date: $DATE."],
	['Adyen: the key', qr/^200 /, 'ask', 'v', $NOW, 'POST', '/adyen', '7914073381342284::TestMerchant:TestPayment-1407325143704:1130:EUR:AUTHORISATION:true', 'X: coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0='],
	['GitHub, whole', qr/^200 /, 'ask', 'v', $NOW, 'POST', '/gh', 'Hello, World!', "X-Hub-Signature-256: $github[1]"],
	(map { ["Standard Webhooks, whole, $_->[0] s later", $_->[1], 'ask', 'v', 1614265330000 + 1000 * $_->[0], 'POST', '/std', $standard[3], "webhook-id: $standard[0]", "webhook-timestamp: $standard[1]", "webhook-signature: $GOOD"] }
	    [0, qr/^200 /], [300, qr/^200 /], [301, $OLD], [-300, qr/^200 /], [-301, $FUTURE]),
	['... its age does not matter later', qr/^200 /, 'ask', 'v', -1, 'POST', '/std', $standard[3], "webhook-id: $standard[0]", "webhook-timestamp: $standard[1]", "webhook-signature: $GOOD"],
	['a method that is none', $WHY->(405, 'not a POST') =~ s/ why.*/ allow=POST/r, 'ask', 'v', $NOW, 'PATCH', '/gh', 'x'],
);

# ---- the page ----------------------------------------------------------------------------------------

mkdir 'secrets' or die;
open my $page, '<', "$top/man/qhook.5" or die;
my $text = do { local $/; <$page> };
my ($shown) = $text =~ /^\.Sh EXAMPLES\n\.Bd.*?\n(.*?)^\.Ed/ms;
spew($_, "$S\n") for $shown =~ m{\bsecrets/[\w-]+}g;
spew('page', $shown);
table_of(['the example of qhook(5) is good', 'ok', 'table', 'page']);
is(join(' ', $text =~ /^\.It Li (\S+) Ta /mg), (driver(['schemes']))[0], '... and its table of schemes');

# ---- requests a little different: none of them is taken for the first --------------------------------------

my $N = 400;
my @mut = (
	['github', '/gh', $gb, "*$gs"], ['stripe', '/stripe', $sb, '*' . stripe($TS)], ['slack', '/slack', $slb, '*' . (slack($slb))[0], '!' . (slack($slb))[1]], ['shopify', '/shop', $shb, "*$sh[0]"],
	['standard', '/std', $stb, map { ('*', '!', '!')[$_] . (standard('msg_1', $TS, $stb, 'webhook'))[$_] } 0 .. 2], ['zoom', '/zoom', $zb, '*' . (zoom($zb))[0], '!' . (zoom($zb))[1]], ['square', '/square', $sqb, "*$sqs"],
	['paddle', '/paddle', $pb, "*$ps"], ['linear', '/linear', (linear($NOW))[0], '*' . (linear($NOW))[1]], ['zendesk', '/zd', $zdb, '*' . (zendesk('2026-06-02T12:00:00Z'))[0], '!' . (zendesk('2026-06-02T12:00:00Z'))[1]],
	['meta', '/meta', $meb, '*X-Hub-Signature-256: sha256=' . H($meb)], ['discord', '/discord', $di[1][0], '*' . (discord(1))[1], '!' . (discord(1))[2]],
	['twilio', "/tw$tq", $tj, '*' . twilio("https://a.example/tw$tq", '')], ['hmac', '/h?i=a', $hb, '*' . hm($hb, 'a', $TS) =~ s/v1=0+,//r],
);
my $seed = 1;
table_of(map { my ($name, @r) = @$_; ["$N mutations of $name", qr/^\d+$/, 'mutate', $seed++, $N, 'hooks', $NOW, 'POST', @r] } @mut);
done_testing();
