//! A module's own keys on topics: who may have one, how it is shown and kept, and what the module is told.

use std::sync::Arc;

use verbatim_broker::NativeJudges;
use verbatim_contract::*;
use verbatim_policy::ExactMirroring;
use verbatim_wire::messages::alter_configs_request::{AlterConfigsResource, AlterableConfig};
use verbatim_wire::messages::describe_configs_request::DescribeConfigsResource;
use verbatim_wire::messages::{AlterConfigsRequest, DescribeConfigsRequest};

use crate::support::{APPEND, DELETE, EXACT, Host, SET, SUBTRACT, batch, text};

/// Calls itself `words.of-mine`, and refuses everything with what it is told of its configuration.
#[derive(Clone)]
struct Asked {
    /// It does not check its configuration.
    takes_any_key: bool,
}

const ASKED: Asked = Asked { takes_any_key: false };

impl ProducePath for Asked {
    fn produce(
        &self,
        _: &Policy,
        _: &Position,
        _: &Request,
        _: &[EpochEntry],
        _: &[Batch],
        log: &mut dyn Callbacks,
    ) -> Result<(), Refusal> {
        let keys = ["words.of-mine.first", "words.of-mine.x", "retention.ms", "words.of-mine.second"];
        let told: Vec<_> = keys.into_iter().map(|key| log.config(key)).collect();
        Err(Refusal { reason: Reason::Other(44), batch: None, expected: None, text: format!("{told:?}") })
    }

    fn describe(&self) -> Description {
        Description { name: "words.of-mine".to_owned(), ..ExactMirroring.describe() }
    }
}

impl Membership for Asked {
    fn may_join(&self, replica: &Replica, end: i64, position: &Position) -> Result<(), String> {
        ExactMirroring.may_join(replica, end, position)
    }
}

/// `words.of-mine.number` is a number, and there is no `words.of-mine.mistyped`.
impl Configuration for Asked {
    fn check(&self, keys: &[(String, String)]) -> Result<(), String> {
        for (name, value) in keys.iter().filter(|_| !self.takes_any_key) {
            assert!(name.starts_with("words.of-mine."), "only its own: {name}");
            let is_right = match name.as_str() {
                "words.of-mine.mistyped" => false,
                "words.of-mine.number" => value.parse::<u32>().is_ok(),
                _ => true,
            };
            if !is_right {
                return Err(format!("not such a key, {name}=`{value}`, of {}", keys.len()));
            }
        }
        Ok(())
    }
}

async fn host() -> Host {
    Host::with(Arc::new(NativeJudges(ASKED))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_module_is_told_its_keys_and_nothing_of_the_hosts() {
    let host = host().await;
    let own = [("words.of-mine.first", " a b "), ("words.of-mine.x", ""), ("retention.ms", "7")];
    assert_eq!(host.create("t", 1, &own).await, (0, String::new()));
    let asked = async |host: &Host| {
        let answer = host.produce("t", &batch(0, 0, &["x"]), None).await;
        assert_eq!(answer.error_code, 44);
        answer.error_message.unwrap().to_string()
    };
    assert_eq!(asked(&host).await, r#"[Some("a b"), Some(""), None, None]"#);
    let changes = [
        ("words.of-mine.second", SET, Some("2")),
        ("words.of-mine.first", DELETE, None),
        ("retention.ms", SET, Some("8")),
    ];
    assert_eq!(host.alter("t", &changes, false).await, (0, String::new()));
    let told = r#"[None, Some(""), None, Some("2")]"#;
    assert_eq!(asked(&host).await, told);
    assert_eq!(asked(&host.restart().await).await, told);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_shown_as_a_dynamic_string_of_the_topic() {
    let host = host().await;
    host.create("t", 1, &[("words.of-mine.first", "$.a")]).await;
    let named = Some(vec![text("words.of-mine.first"), text("retention.ms")]);
    for (keys, version) in [(None, 1), (None, 4), (named, 4)] {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text("t"))
            .with_configuration_keys(keys);
        let request = DescribeConfigsRequest::default()
            .with_include_synonyms(true)
            .with_include_documentation(version > 2)
            .with_resources(vec![resource]);
        let rows = host.client.send(version, &request).await.unwrap().results.remove(0).configs;
        let row = rows.iter().find(|row| row.name.as_str() == "words.of-mine.first").unwrap();
        assert_eq!((row.value.as_ref().unwrap().as_str(), row.config_source), ("$.a", 1));
        assert_eq!((row.read_only, row.is_sensitive), (false, false));
        assert_eq!((row.synonyms[0].name.as_str(), row.synonyms.len()), ("words.of-mine.first", 1));
        if version > 2 {
            assert_eq!(row.config_type, 2);
            assert!(row.documentation.as_ref().is_some_and(|doc| doc.contains("module")));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_key_of_a_module_is_refused_and_the_modules_are_named() {
    let host = host().await;
    host.create("t", 1, &[]).await;
    let modules = "modules=`words.of-mine`";
    for name in
        ["redact.mask.json", "words.x", "words.of-mine", "words.of-mine.", "words.of-mines.x", ".x", "x", ""]
    {
        let (code, told) = host.create("n", 1, &[(name, "1")]).await;
        assert_eq!(code, 40, "{name}");
        assert!(told.contains(modules) && told.contains(&format!("name=`{name}`")), "{told}");
        for (operation, value) in [(SET, Some("1")), (DELETE, None), (APPEND, Some("1"))] {
            let (code, told) = host.alter("t", &[(name, operation, value)], false).await;
            assert_eq!(code, 40, "{name}");
            assert!(told.contains(modules) && told.contains(&format!("name=`{name}`")), "{told}");
        }
    }
    assert_eq!(host.alter("t", &[("words.of-mine.x", DELETE, None)], false).await.0, 0, "nothing to delete");
    for operation in [APPEND, SUBTRACT] {
        let (code, told) = host.alter("t", &[("words.of-mine.x", operation, Some("1"))], false).await;
        assert_eq!(code, 40);
        assert!(told.contains("need a list") && told.contains("words.of-mine.x"), "{told}");
    }
    assert_eq!(host.metadata("n").await.error_code, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_under_the_hosts_name_of_a_module_is_refused_with_the_one_that_it_reads() {
    let host = host().await;
    let name = "exact-mirroring.first";
    host.create("t", 1, &[]).await;
    for (code, told) in
        [host.create("n", 1, &[(name, "1")]).await, host.alter("t", &[(name, SET, Some("1"))], false).await]
    {
        assert_eq!(code, 40);
        assert!(
            told.contains("begin with `words.of-mine.`") && told.contains(&format!("name=`{name}`")),
            "{told}"
        );
    }
    assert_eq!(host.metadata("n").await.error_code, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_module_does_not_take_is_refused_as_it_is_set() {
    let host = host().await;
    let (number, mistyped) = ("words.of-mine.number", "words.of-mine.mistyped");
    assert_eq!(host.create("t", 1, &[(number, "1"), ("words.of-mine.a", "1")]).await, (0, String::new()));
    for (name, value) in [(number, "one"), (number, ""), (mistyped, "1")] {
        let (code, told) = host.create("n", 1, &[("words.of-mine.a", "1"), (name, value)]).await;
        assert_eq!(code, 40, "{name}={value}: {told}");
        assert!(told.contains(&format!("{name}=`{value}`, of 2")), "in the module's words: {told}");
        let changes = [(name, SET, Some(value)), ("segment.ms", SET, Some("9"))];
        let (code, told) = host.alter("t", &changes, false).await;
        assert_eq!(code, 40, "{name}={value}: {told}");
        assert!(told.contains("the module `exact-mirroring`") && told.contains(name), "{told}");
    }
    assert_eq!(host.metadata("n").await.error_code, 3);
    let rows = host.describe("t").await;
    assert!(rows[number].0 == "1" && rows["segment.ms"].0 != "9", "nothing changed");
    assert_eq!(host.alter("t", &[(number, SET, Some("2"))], false).await, (0, String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_set_before_the_module_refused_it_can_always_be_removed() {
    let host = Host::with(Arc::new(NativeJudges(Asked { takes_any_key: true }))).await;
    let (number, mistyped) = ("words.of-mine.number", "words.of-mine.mistyped");
    let wrong = [(number, "one"), (mistyped, "1"), ("words.of-mine.a", "1")];
    assert_eq!(host.create("t", 1, &wrong).await, (0, String::new()));
    let (folder, _) = host.stop().await;
    let host = Host::start_in((folder, Arc::new(NativeJudges(ASKED)))).await;
    // What is no business of the module's goes on; its keys are judged together as one is set.
    assert_eq!(host.alter("t", &[("segment.ms", SET, Some("9"))], false).await, (0, String::new()));
    assert_eq!(host.alter("t", &[("words.of-mine.a", SET, Some("2"))], false).await.0, 40);
    assert_eq!(host.alter("t", &[(mistyped, DELETE, None)], false).await, (0, String::new()));
    assert_eq!(host.alter("t", &[("words.of-mine.a", SET, Some("2"))], false).await.0, 40);
    let both = [(number, DELETE, None), ("words.of-mine.a", SET, Some("2"))];
    assert_eq!(host.alter("t", &both, false).await, (0, String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn its_limits_are_told() {
    let host = host().await;
    let key = |len: usize| format!("words.of-mine.{}", "k".repeat(len - "words.of-mine.".len()));
    let (longest, too_long) = (key(255), key(256));
    let (large, too_large) = ("v".repeat(32_767), "v".repeat(32_768));
    assert_eq!(host.create("t", 1, &[(&longest, &large)]).await, (0, String::new()));
    let row = &host.describe("t").await[&longest];
    assert_eq!((row.0.as_str(), row.1), (large.as_str(), 1));
    for (name, value, parts) in [
        (&too_long, "1", ["255 bytes", "length=`256`"]),
        (&longest, too_large.as_str(), ["32767 bytes", "length=`32768`"]),
    ] {
        for (code, told) in [
            host.create("n", 1, &[(name, value)]).await,
            host.alter("t", &[(name, SET, Some(value))], false).await,
        ] {
            assert_eq!(code, 40);
            assert!(parts.iter().all(|part| told.contains(part)) && told.contains(name.as_str()), "{told}");
        }
    }
    let names = ["a", "b", "c", "d"].map(|name| format!("words.of-mine.{name}"));
    let keys: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), large.as_str())).collect();
    assert_eq!(host.create("together", 1, &keys[..3]).await, (0, String::new()));
    let (code, told) = host.create("n", 1, &keys).await;
    assert!(code == 40 && told.contains("131072 bytes together"), "{told}");
    let names: Vec<String> = (0..257).map(|number| format!("words.of-mine.{number}")).collect();
    let keys: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    assert_eq!(host.create("most", 1, &keys[..256]).await, (0, String::new()));
    let (code, told) = host.create("more", 1, &keys).await;
    assert!(code == 40 && told.contains("256") && told.contains("`257`"), "{told}");
    let one_more = [(names[256].as_str(), SET, Some("1"))];
    assert_eq!(host.alter("most", &one_more, false).await.0, 40);
    let instead = [(names[0].as_str(), DELETE, None), one_more[0]];
    assert_eq!(host.alter("most", &instead, false).await.0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_an_exact_topic_everybody_may_change_it_but_a_mirror() {
    let host = host().await;
    host.exact("copy", &[("words.of-mine.a", "1")]).await;
    for (change, marked, code) in [
        (("words.of-mine.a", SET, Some("2")), true, 44),
        (("words.of-mine.b", SET, Some("2")), true, 44),
        (("words.of-mine.a", DELETE, None), true, 44),
        (("words.of-mine.a", SET, Some("1")), true, 0),
        (("words.of-mine.b", DELETE, None), true, 0),
        (("words.of-mine.b", SET, Some("3")), false, 0),
        (("words.of-mine.a", DELETE, None), false, 0),
    ] {
        let (found, told) = host.alter("copy", &[change], marked).await;
        assert_eq!(found, code, "{change:?} marked {marked}: {told}");
        assert!(found == 0 || told.contains(change.0), "{told}");
    }
    let rows = host.describe("copy").await;
    assert!(rows["words.of-mine.b"].0 == "3" && !rows.contains_key("words.of-mine.a"));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_stays_when_its_module_is_gone() {
    let host = host().await;
    let own = [EXACT, ("words.of-mine.a", "1"), ("words.of-mine.b", "2")];
    host.create("t", 1, &own).await;
    let (folder, _) = host.stop().await;
    let host = Host::start_in((folder, Arc::new(NativeJudges(ExactMirroring)))).await;
    assert_eq!(host.describe("t").await["words.of-mine.a"], ("1".to_owned(), 1));
    // What is there may stay as it is, and go.
    assert_eq!(host.alter("t", &[("segment.ms", SET, Some("9"))], false).await, (0, String::new()));
    assert_eq!(host.alter("t", &[("words.of-mine.a", SET, Some("9"))], false).await.0, 40);
    assert_eq!(host.alter("t", &[("words.of-mine.a", DELETE, None)], false).await, (0, String::new()));
    assert_eq!(host.alter("t", &[("words.of-mine.a", SET, Some("1"))], false).await.0, 40);
    let replace = async |configs: &[(&str, &str)]| {
        let config = |(name, value): &(&str, &str)| {
            AlterableConfig::default().with_name(text(name)).with_value(Some(text(value)))
        };
        let resource = AlterConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text("t"))
            .with_configs(configs.iter().map(config).collect());
        let request = AlterConfigsRequest::default().with_resources(vec![resource]);
        host.client.call(&request).await.unwrap().responses[0].error_code
    };
    assert_eq!(replace(&[EXACT, ("words.of-mine.b", "3")]).await, 40);
    assert_eq!(replace(&[EXACT, ("words.of-mine.b", "2"), ("exact-mirroring.c", "4")]).await, 0);
    let rows = host.describe("t").await;
    assert_eq!((rows["words.of-mine.b"].0.as_str(), rows["exact-mirroring.c"].0.as_str()), ("2", "4"));
    assert_eq!(replace(&[EXACT]).await, 0);
    assert!(!host.describe("t").await.contains_key("words.of-mine.b"));
}
